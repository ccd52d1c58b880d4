"""Websites as sources of pages, fetched politely, and only from safe addresses.

Needs the extra ``web``.
"""

from __future__ import annotations

from linkstore.errors import MissingExtraError

try:
    from linkstore.ingest.web.targets import (
        FetchError,
        ForbiddenUrlError,
        RobotsError,
        SiteUnavailableError,
        WebSettings,
        WebSettingsError,
    )
    from linkstore.ingest.web.website import WebsiteSource
except ModuleNotFoundError as error:
    if error.name not in {"httpcore2", "protego"}:
        raise
    raise MissingExtraError("indexing a website", "web") from error

__all__ = [
    "FetchError",
    "ForbiddenUrlError",
    "RobotsError",
    "SiteUnavailableError",
    "WebSettings",
    "WebSettingsError",
    "WebsiteSource",
]
