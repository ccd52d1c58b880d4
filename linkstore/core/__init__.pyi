from .hits import Hit as Hit, Hits as Hits, Path as Path, Step as Step
from .links import (
    Link as Link,
    add_links as add_links,
    copy_with_links as copy_with_links,
    get_links as get_links,
)
