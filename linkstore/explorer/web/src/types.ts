/** What the server and the data of a page hold; `linkstore/explorer` makes them. */

export interface Settings {
  strategy: string;
  k: number;
  depth: number | null;
  kinds: string[] | null;
  filter: Record<string, unknown> | null;
}

export interface Step {
  id: string;
  url: string | null;
  kind: string | null;
  tag: string | null;
  label: string | null;
}

/** A link of a chain, in the direction its author gave it. */
export interface Triple {
  subject: string;
  kind: string;
  object: string;
  label: string | null;
}

export interface Hit {
  id: string;
  title: string | null;
  name: string;
  headings: string[];
  page: string;
  url: string | null;
  score: number;
  similarity: number;
  depth: number;
  parts: Record<string, number>;
  path: Step[];
  /** Each with the id that it starts from, then its links. */
  chains: [string, ...Triple[]][];
  /** In parts, of which every second one is a word of the question. */
  snippet: string[];
  passage: string;
}

export interface GraphNode {
  id: string;
  title: string;
  url: string | null;
  role: "start" | "hit" | "way";
  depth: number;
  score: number | null;
  /** The page of a document on the way, where a server has looked it up. */
  page?: string;
}

export interface GraphEdge {
  source: string;
  target: string;
  kind: string;
  label: string | null;
  followed: boolean;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

export interface Cut {
  reason: string;
  count: number;
  depth: number | null;
  detail: string;
}

export interface Answer {
  question: string;
  strategy: string;
  reason: string | null;
  doubt: string | null;
  /** With less, a text is hardly about the question; -1 for a question that names a document; null if not known. */
  least_similarity: number | null;
  hits: Hit[];
  pages: { page: string; hits: number[] }[];
  graph: Graph;
  cuts: Cut[];
  seconds?: number;
}

/** The values of metadata fields by which a search can be narrowed, by field, the most frequent first. */
export type Facets = Record<string, { label: string; pages: number; condition: unknown }[]>;

export interface Absence {
  id: string;
  title: string;
  rank: number | null;
  last: number | null;
  hit?: Hit;
  reasons: string[];
}

export interface Chunk {
  id: string;
  /** The title and the headings above it, outermost first; none unless linkstore has read the page. */
  headings: string[];
  text: string;
  url: string | null;
}

/** A link of a page, and the document at its other end. */
export interface PageLink {
  kind: string;
  tag: string;
  label: string | null;
  id: string;
  /** The chunk that an outgoing link stands in. */
  at?: string;
}

export interface Other {
  title: string | null;
  name: string;
  page: string;
  text: string;
}

export interface DocumentData {
  id: string;
  page: string;
  title: string | null;
  name: string;
  url: string | null;
  chunks: Chunk[];
  left_out: number;
  /** Words of the question, as they stand in the document. */
  words: string[];
  passage: string;
  metadata: Record<string, unknown>;
  outgoing: PageLink[];
  incoming: PageLink[];
  nowhere: { kind: string; tag: string; label: string | null }[];
  hubs: string[];
  others: Record<string, Other>;
  /** Which of the others link to which. */
  between: [string, string][];
}

export interface Found {
  id: string;
  title: string;
  page: string;
}

export interface CorpusNode {
  id: string;
  page: string;
  title: string;
  rank: number;
  degree: number;
  folder: string;
  fields: Record<string, string>;
}

export interface Corpus {
  /** What a node is: "page", or "document" in a store without pages. */
  noun: string;
  pages: number;
  links: number;
  nodes: CorpusNode[];
  edges: [number, number, number][];
  hubs: { kind: string; tag: string; pages: number }[];
  orphans: { count: number; first: { id: string; title: string }[] };
  degrees: number[];
  fields: Record<string, string[]>;
  dates: string[];
}

export interface Finding {
  check: string;
  severity: string;
  text: string;
  count: number;
  examples: string[];
}

export interface Checkup {
  healthy: boolean;
  links: Record<string, number>;
  dangling: Record<string, number>;
  findings: Finding[];
  skipped: Record<string, string>;
}

export interface Suggestion {
  source: string;
  target: string;
  source_page: string;
  target_page: string;
  score: number;
  reason: string;
  phrase: string;
  passage: string;
}

export interface StoreData {
  name: string;
  documents: number;
  pages: number;
  links: Record<string, number>;
  strategies: { name: string; depths: number[]; kinds: boolean }[];
  memory: boolean;
  write: boolean;
}

export interface Session {
  path: string;
  label: string;
  turns: number;
}

export interface TurnData {
  id: string;
  ordinal: number;
  time: string;
  query: string;
  response: string | null;
  entities: string[];
  sources: string[];
}

export interface RecallData {
  question: string;
  resolved: string;
  entities: string[];
  turns: { score: number; turn: TurnData }[];
  prompt: string;
  reason: string | null;
}

/** What the element `#linkstore-data` of a page, or the widget, holds. */
export type PageData =
  | { mode: "server" }
  | { mode: "answer"; answer: Answer }
  | { mode: "corpus"; corpus: Corpus };
