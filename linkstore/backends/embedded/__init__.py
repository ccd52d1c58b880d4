"""The embedded engine: SQLite holds the truth, numpy and usearch answer from what derives of it."""

from linkstore.backends.embedded.backend import EmbeddedBackend, EmbeddedSettings

__all__ = ["EmbeddedBackend", "EmbeddedSettings"]
