/** Communities of the pages that are drawn, by the method of Louvain. */

import { UndirectedGraph } from "graphology";
import louvain from "graphology-communities-louvain";
import type { Corpus } from "./types";

/** Names the community of each node after its page of the highest rank; the same graph always has the same ones. */
export function nameCommunities(corpus: Corpus): string[] {
  const graph = new UndirectedGraph();
  corpus.nodes.forEach((_, at) => graph.addNode(at));
  for (const [source, target, weight] of corpus.edges) {
    graph.updateEdge(source, target, (given) => ({ weight: ((given.weight as number | undefined) ?? 0) + weight }));
  }
  let seed = 1;
  const rng = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;  // S. Park and K. Miller, 1988
  const found: Record<string, number> = graph.size ? louvain(graph, { rng }) : {};
  const communities = corpus.nodes.map((_, at) => found[at] ?? -1 - at);  // without links, each page is one
  const best = new Map<number, number>();
  communities.forEach((community, at) => {
    const leader = best.get(community);
    const rank = (place: number | undefined): number => corpus.nodes[place ?? -1]?.rank ?? -1;
    if (rank(at) > rank(leader)) best.set(community, at);
  });
  return communities.map((community) => corpus.nodes[best.get(community) ?? -1]?.id ?? "");
}
