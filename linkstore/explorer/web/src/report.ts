/** What a store's links look like, in words. */

import { count } from "./dom";
import type { Corpus } from "./types";

/** The communities of a corpus that have more than one page, largest first, each with its places. */
export function listCommunities(communities: string[]): [string, number[]][] {
  const members = new Map<string, number[]>();
  communities.forEach((community, at) => members.set(community, [...(members.get(community) ?? []), at]));
  return [...members].filter(([, places]) => places.length > 1).sort(([id, one], [otherId, other]) => other.length - one.length || (id < otherId ? -1 : 1));
}

/** Returns sentences about a corpus: how large it is, how it falls into groups, how well it is linked. */
export function describeCorpus(corpus: Corpus, communities: string[]): string[] {
  const titles = new Map(corpus.nodes.map((node) => [node.id, node.title]));
  const groups = listCommunities(communities);
  const sentences = [corpus.nodes.length < corpus.pages
    ? `The store has ${count(corpus.pages, corpus.noun)} and ${count(corpus.links, "link")} between them; the map shows the ${corpus.nodes.length.toLocaleString("en")} with the highest PageRank.`
    : `The store has ${count(corpus.pages, corpus.noun)} and ${count(corpus.links, "link")} between them.`];
  const [largest] = groups;
  if (groups.length > 1 && largest) {
    sentences.push(`They fall into ${count(groups.length, "group")} that link each other more than the rest. The largest, around \u201c${titles.get(largest[0]) ?? ""}\u201d, has ${count(largest[1].length, corpus.noun)}.`);
  }
  const linked = corpus.degrees.reduce((sum, pages) => sum + pages, 0);
  if (linked && corpus.links) sentences.push(describeDegrees(corpus, linked));
  if (corpus.orphans.count === corpus.pages && corpus.pages > 1) {
    sentences.push(`No ${corpus.noun} is linked with another, so each is found by its words alone.`);
  } else if (corpus.orphans.count) {
    const one = corpus.orphans.count === 1;
    sentences.push(`${count(corpus.orphans.count, corpus.noun)} ${one ? "is" : "are"} linked with no other, so ${one ? "it is" : "they are"} found by ${one ? "its" : "their"} words alone.`);
  } else if (corpus.pages > 1) sentences.push(`Every ${corpus.noun} is linked with another.`);
  const [hub] = corpus.hubs;
  if (hub) sentences.push(`The ${hub.kind} \u201c${hub.tag}\u201d is shared by ${count(hub.pages, corpus.noun)}; such links say little, and are not drawn.`);
  return sentences;
}

/** Says with how many pages half of all pages are linked at most; `degrees` counts 0, 1, 2 to 3, 4 to 7 and so on. */
function describeDegrees(corpus: Corpus, pages: number): string {
  const known = corpus.nodes.map(({ degree }) => degree).sort((one, other) => one - other);
  if (known.length === pages) return `Half of them have at most ${count(known[(pages - 1) >> 1] ?? 0, "link")}.`;
  let [sum, at] = [0, 0];
  for (; at < corpus.degrees.length; at += 1) {
    sum += corpus.degrees[at] ?? 0;
    if (2 * sum >= pages) break;
  }
  const most = at < 2 ? at : 2 ** at - 1;
  return `Half of them have at most ${count(most, "link")}.`;
}
