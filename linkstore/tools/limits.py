"""The limits of tools: what they may do and how much they may return."""

from __future__ import annotations

from dataclasses import dataclass

from linkstore.arguments import require_at_least, require_within


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """Limits of the tools of a store; a call cannot exceed them, whatever a model asks for.

    Args:
        max_depth: How many links in a row ``search`` may follow; default 3. The ceiling is this or that of
            the store, whichever is lower.
        results: Maximum number of documents that ``search`` and ``follow`` return; default 8.
        snippet: Maximum number of characters of text for each of them; default 200.
        chains: Maximum number of chains of links for each document of ``search``; default 3.
        links: Maximum number of links that ``links`` returns; default 50.
        text: Maximum number of characters that ``read`` returns at once; default 8,000.
        min_similarity: Minimum similarity of the documents that ``search`` starts from by similarity, in
            [-1, 1]; None, the default, takes that of the store; -1 is no minimum.

    Raises:
        StrategyError: If a limit is not a number of its range; the message names it.
    """

    max_depth: int = 3
    results: int = 8
    snippet: int = 200
    chains: int = 3
    links: int = 50
    text: int = 8000
    min_similarity: float | None = None

    def __post_init__(self) -> None:
        require_at_least(0, max_depth=self.max_depth)
        require_at_least(1, results=self.results, snippet=self.snippet, chains=self.chains)
        require_at_least(1, links=self.links, text=self.text)
        if self.min_similarity is not None:
            require_within(-1, 1, min_similarity=self.min_similarity)
