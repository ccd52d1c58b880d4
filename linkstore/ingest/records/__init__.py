"""Sources of finished documents: JSON lines, and the documents of other loaders."""
