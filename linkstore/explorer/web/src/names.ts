/** What the page says where a machine would say ids and numbers: names, grades, questions. */

import type { Answer, Corpus, CorpusNode, Hit } from "./types";

export type Grade = "strong" | "good" | "linked" | "weak";

export const GRADES: Record<Grade, { word: string; means: string }> = {
  strong: { word: "strong", means: "About the question: nearer to the best hit than to the store's threshold" },
  good: { word: "good", means: "About the question: above the similarity that the store asks of a match" },
  linked: { word: "by links", means: "Its words alone would not have found it; links from what matches led to it" },
  weak: { word: "weak", means: "Below the similarity that the store asks of a match" },
};

/**
 * Grades a hit by the rule of the whole answer's match: the least similarity with which a text is about a question,
 * here split in the middle between it and the best hit. Where that is not known, it is taken for 0.
 */
export function gradeHit(hit: Hit, answer: Answer): Grade {
  const least = Math.max(answer.least_similarity ?? 0, 0);
  const best = Math.max(...answer.hits.map(({ similarity }) => similarity));
  if (answer.doubt !== null) return "weak";
  if (hit.similarity >= least) return hit.similarity >= (least + best) / 2 ? "strong" : "good";
  return hit.depth > 0 ? "linked" : "weak";
}

/** Says how well the best hit matches, as `hits.match` does; nothing where the store has no threshold. */
export function describeMatch(answer: Answer): string {
  if (answer.doubt !== null || answer.least_similarity === null || !answer.hits.length) return "";
  const best = Math.max(...answer.hits.map(({ similarity }) => similarity));
  return best >= answer.least_similarity ? "strong match" : "weak match";
}

export function gradePage(hits: Hit[], answer: Answer): Grade {
  const order = Object.keys(GRADES) as Grade[];
  return hits.map((hit) => gradeHit(hit, answer)).sort((grade, other) => order.indexOf(grade) - order.indexOf(other))[0] ?? "weak";
}

/** Puts the heading before the title of its page: of several chunks of a page, their headings tell them apart. */
export function nameNode(title: string): string {
  const [page, ...headings] = title.split(" > ");
  return headings.length ? `${headings.at(-1)} \u2014 ${page}` : title;
}

/** Returns the titles without the ending that most of them share, such as " | The site". */
export function trimTitles(titles: string[]): string[] {
  const ending = /\s+[|\u2013\u2014\u00b7-]\s+[^|\u2013\u2014\u00b7]+$/;
  const endings = new Map<string, number>();
  for (const title of titles) {
    const end = ending.exec(title)?.[0];
    if (end) endings.set(end, (endings.get(end) ?? 0) + 1);
  }
  const shared = [...endings].find(([, times]) => times > 2 && times > titles.length / 2)?.[0];
  return shared ? titles.map((title) => (title.endsWith(shared) ? title.slice(0, -shared.length) : title)) : titles;
}

const MOST_LETTERS = 60;

/** Returns up to three questions made from titles: of central pages, each of another community, and of two that are linked. */
export function makeQuestions(corpus: Corpus, communities: string[]): string[] {
  const titles = trimTitles(corpus.nodes.map(({ title }) => title));
  const usable = (at: number): boolean => {
    const title = titles[at] ?? "";
    return /\p{L}{3}/u.test(title) && title.length <= MOST_LETTERS && !/[\p{C}<>{}]|[.!\u2026]$/u.test(title);
  };
  const places = corpus.nodes.map((_, at) => at).filter(usable);
  places.sort((at, other) => rankAt(corpus.nodes, other) - rankAt(corpus.nodes, at));
  const seen = new Set<string>();
  const centres = places.filter((at) => {
    const community = communities[at] ?? "";
    return !seen.has(community) && seen.add(community);
  });
  const [first, second, third] = [...centres, ...places.filter((at) => !centres.includes(at))];
  const ask = (at: number): string => {
    const title = titles[at] ?? "";
    return /^(how|what|why|when|where|who|which)\b/i.test(title) ? `${title.replace(/[?.]?$/, "")}?` : `What should I know about ${title}?`;
  };
  const partner = corpus.edges
    .filter(([source, target]) => second !== undefined && (source === second || target === second) && source !== first && target !== first)
    .map(([source, target]) => (source === second ? target : source))
    .filter((at) => usable(at) && at !== third && `${titles[at]}${titles[second ?? -1]}`.length <= MOST_LETTERS)
    .sort((at, other) => rankAt(corpus.nodes, other) - rankAt(corpus.nodes, at))[0];
  const questions = [
    first === undefined ? "" : ask(first),
    second === undefined ? "" : partner === undefined ? ask(second) : `How are ${titles[second]} and ${titles[partner]} related?`,
    third === undefined ? "" : ask(third),
  ];
  return [...new Set(questions.filter(Boolean))];
}

function rankAt(nodes: CorpusNode[], at: number): number {
  return nodes[at]?.rank ?? 0;
}
