from .backend import EmbeddedBackend as EmbeddedBackend
from .maintenance import EmbeddedSettings as EmbeddedSettings
