"""Websites as sources of pages, fetched politely, and only from safe addresses.

Needs the extra ``web``.
"""

from __future__ import annotations

from linkstore.ingest.web.errors import (
    FetchError,
    ForbiddenUrlError,
    RobotsError,
    SiteUnavailableError,
    WebSettingsError,
)
from linkstore.ingest.web.settings import WebSettings
from linkstore.ingest.web.source import WebSource
from linkstore.ingest.web.website import index_website, open_website

__all__ = [
    "FetchError",
    "ForbiddenUrlError",
    "RobotsError",
    "SiteUnavailableError",
    "WebSettings",
    "WebSettingsError",
    "WebSource",
    "index_website",
    "open_website",
]
