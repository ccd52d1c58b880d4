"""The embedded engine: SQLite stores the documents; numpy and usearch answer from data derived from them."""

from linkstore.backends.embedded.backend import EmbeddedBackend
from linkstore.backends.embedded.settings import EmbeddedSettings

__all__ = ["EmbeddedBackend", "EmbeddedSettings"]
