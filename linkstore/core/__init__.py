"""Values that everything shares: documents, links, filters, hits, texts, URLs, arrays; and calls."""
