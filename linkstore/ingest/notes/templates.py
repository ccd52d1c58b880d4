"""Tells the templates of a vault, of which notes are made, from its notes.

A template says nothing by itself, and its links and tags are those of notes to come. Templates are the notes
in the folder that Obsidian's own plugin for them is set to and, in a folder called ``templates``, the notes
with the placeholders of that plugin or of Templater.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from dataclasses import replace
from typing import Final

from linkstore.ingest.files import Listing, PageFile
from linkstore.ingest.folders import Folder
from linkstore.ingest.source import UnreadablePageError

TEMPLATES: Final = "templates of notes"
"""How a summary counts them."""
_SETTINGS: Final = ".obsidian/templates.json"
_LARGEST: Final = 64 * 2**10
"""Bytes of the settings, and of a note in which placeholders are looked for."""
_FOLDERS: Final = frozenset({"templates", "_templates"})
_PLACEHOLDER: Final = re.compile(rb"\{\{\s*(?:title|date|time)\s*(?::[^{}\n]{0,100})?\}\}|<%[-_*+]?\s*tp\.")


def leave_out_templates(listing: Listing) -> Listing:
    """Return a listing of a vault without its templates, which are counted."""
    chosen = _read_setting(listing.folder)
    kept = tuple(file for file in listing.files if not _is_template(file, chosen))
    count = len(listing.files) - len(kept)
    unread = Counter({**listing.unread, **({TEMPLATES: count} if count else {})})
    return replace(listing, files=kept, unread=dict(unread.most_common()))


def _read_setting(folder: Folder) -> str:
    """Return the folder of templates that Obsidian is set to, empty without one."""
    try:
        settings = json.loads(folder.read(_SETTINGS, _LARGEST))
    except (OSError, UnreadablePageError, ValueError, RecursionError):
        return ""  # there is none, or Obsidian could not read it either
    name = settings.get("folder") if isinstance(settings, dict) else None
    lead = posixpath.normpath(name.strip("/")) if isinstance(name, str) else "."
    return "" if lead == "." else lead


def _is_template(file: PageFile, chosen: str) -> bool:
    if chosen and file.page.startswith(f"{chosen}/"):
        return True
    if _FOLDERS.isdisjoint(part.lower() for part in file.page.split("/")[:-1]):
        return False
    try:
        return _PLACEHOLDER.search(file.folder.head(file.page, _LARGEST)) is not None
    except (OSError, UnreadablePageError):
        return False  # it is read again, and then reported
