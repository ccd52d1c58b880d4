from .targets import (
    FetchError as FetchError,
    ForbiddenUrlError as ForbiddenUrlError,
    RobotsError as RobotsError,
    SiteUnavailableError as SiteUnavailableError,
    WebSettings as WebSettings,
)
from .website import WebsiteSource as WebsiteSource
