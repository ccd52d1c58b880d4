from .targets import (
    FetchError as FetchError,
    ForbiddenUrlError as ForbiddenUrlError,
    RobotsError as RobotsError,
    SiteUnavailableError as SiteUnavailableError,
    WebSettings as WebSettings,
    WebSettingsError as WebSettingsError,
)
from .website import WebsiteSource as WebsiteSource
