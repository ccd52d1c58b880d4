"""What MediaWiki and Wikimedia's wikis call things, as ``mediawiki.toml`` beside this module lists it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

NAMES: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("mediawiki.toml").read_text("utf-8"))


def split_names(names: str) -> list[str]:
    """Return the names in a list of words, in which ``_`` stands for a space."""
    return [name.replace("_", " ") for name in names.split()]
