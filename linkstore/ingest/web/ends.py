"""What each URL of a site leads to: a page, another URL, or nothing."""

from __future__ import annotations


class Ends:
    """The outcome of each URL that was visited; URLs are named by their keys (:meth:`Scope.key`)."""

    def __init__(self) -> None:
        self._ends: dict[str, str | None] = {}
        self._moved: dict[str, dict[str, str]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._ends

    def is_nothing(self, key: str) -> bool:
        """Say whether nothing to index was found there."""
        return key in self._ends and self._ends[key] is None

    def is_page(self, key: str) -> bool:
        """Say whether a page was found there."""
        return self._ends.get(key) == key

    def add_page(self, key: str) -> None:
        """Record that a page is there."""
        self._ends[key] = key

    def add_nothing(self, key: str) -> None:
        """Record that nothing to index is there."""
        self._ends.setdefault(key, None)

    def add_move(self, key: str, url: str, target: str) -> None:
        """Record that a URL leads to another one, of which more may be known later.

        Args:
            key: Of the URL.
            url: The URL, as it is asked.
            target: The key of what it leads to, not one that leads back here.
        """
        final = self.final(target)
        names = {**self._moved.pop(key, {}), key: url}
        for name in names:
            self._ends[name] = final
        self._moved.setdefault(final, {}).update(names)

    def final(self, key: str) -> str:
        """Return the last URL that a URL is known to lead to, itself if it leads to no other."""
        while (following := self._ends.get(key)) is not None and following != key:
            key = following
        return key

    def moved_to(self, key: str) -> dict[str, str]:
        """Return the URLs that lead to a page, by key."""
        return dict(self._moved.get(key, {}))
