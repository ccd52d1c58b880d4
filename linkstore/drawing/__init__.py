"""Draws the result of a search: documents in columns by depth, their links, and one highlighted path."""

from __future__ import annotations

from linkstore.drawing.graph import Drawing, draw

__all__ = ["Drawing", "draw"]
