"""A MediaWiki XML dump as a source of pages."""

from __future__ import annotations

from linkstore.ingest.wiki.source import WikiSettings, WikiSource, index_wiki

__all__ = ["WikiSettings", "WikiSource", "index_wiki"]
