from .targets import WebSettings as WebSettings
from .website import WebsiteSource as WebsiteSource
