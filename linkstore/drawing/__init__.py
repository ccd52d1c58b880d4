"""Draw what a search found: documents in columns by depth, the links between them, one path marked."""

from __future__ import annotations

from linkstore.drawing.graph import Drawing, draw

__all__ = ["Drawing", "draw"]
