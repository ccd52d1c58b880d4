"""Websites as sources of pages, fetched politely, and only from safe addresses.

Needs the extra ``web``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.ingest.web.client import WebSettings
    from linkstore.ingest.web.targets import (
        FetchError,
        ForbiddenUrlError,
        RobotsError,
        SiteUnavailableError,
        WebSettingsError,
    )
    from linkstore.ingest.web.website import WebSource, index_website, open_website

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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.ingest.web.client": "WebSettings",
        "linkstore.ingest.web.targets": (
            "FetchError ForbiddenUrlError RobotsError SiteUnavailableError WebSettingsError"
        ),
        "linkstore.ingest.web.website": "WebSource index_website open_website",
    },
)
