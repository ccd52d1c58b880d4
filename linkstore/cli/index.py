"""``linkstore index``: from a folder of pages to a store."""

from __future__ import annotations


def index() -> None:
    """Later."""
