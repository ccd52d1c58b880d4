from ._version import __version__ as __version__
from .core.hits import Hit as Hit, Hits as Hits, Path as Path, PathStep as PathStep
from .core.links import (
    Link as Link,
    add_links as add_links,
    copy_with_links as copy_with_links,
    get_links as get_links,
)
from .errors import LinkStoreError as LinkStoreError
from .store import LinkRetriever as LinkRetriever, LinkStore as LinkStore
