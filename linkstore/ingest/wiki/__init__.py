"""MediaWiki's dumps, and ZIM files, as sources of pages."""
