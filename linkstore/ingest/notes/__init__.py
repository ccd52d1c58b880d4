"""Markdown notes: vaults, front matter, wikilinks."""
