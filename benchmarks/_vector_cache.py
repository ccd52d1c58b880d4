"""Keeps the vectors of texts on disk, so that slow embeddings compute each text once for all benchmarks."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from linkstore.core.arrays import Floats
from linkstore.embeddings.encoder import Encoder
from linkstore.embeddings.names import get_encoder

_BATCH = 256


class CachedEncoder(Encoder):
    """An encoder with the vectors and the name of another, which it asks only for texts that are new.

    Args:
        encoder: Computes vectors.
        folder: Keeps them in one SQLite file for each name of an encoder.
    """

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self._encoder = encoder
        self.instruction = encoder.instruction  # type: ignore[misc]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{encoder.name}.sqlite"
        self._kept = sqlite3.connect(path, timeout=60, check_same_thread=False, isolation_level=None)
        self._kept.execute("PRAGMA journal_mode=WAL")
        self._kept.execute(
            "CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID"
        )

    @property
    def name(self) -> str:
        """That of the other."""
        return self._encoder.name

    @property
    def dimension(self) -> int:
        """That of the other."""
        return self._encoder.dimension

    def _vectors(self, texts: Sequence[str]) -> Floats:
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        found = {key: vector for key in set(keys) if (vector := self._look_up(key)) is not None}
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in found}.items())
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            vectors = self._encoder.embed_array([text for _, text in batch])
            rows = [(key, vector.tobytes()) for (key, _), vector in zip(batch, vectors, strict=True)]
            self._kept.executemany("INSERT OR IGNORE INTO vector VALUES (?, ?)", rows)
            found.update((key, np.frombuffer(value, np.float32)) for key, value in rows)
        return (
            np.stack([found[key] for key in keys]).copy()
            if keys
            else np.empty((0, self.dimension), np.float32)
        )

    def _look_up(self, key: bytes) -> Floats | None:
        row = self._kept.execute("SELECT value FROM vector WHERE key = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], np.float32)


def make_encoder(name: str, cache: str | Path | None) -> Encoder:
    """Make an embedding by its name; with a folder ``cache``, one that keeps its vectors there."""
    encoder = get_encoder(name)
    if cache is None:
        return encoder  # type: ignore[return-value]
    return CachedEncoder(encoder, Path(cache))  # type: ignore[arg-type]
