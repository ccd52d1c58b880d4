"""URLs that would lead a careless fetcher astray."""

from __future__ import annotations

import json
from pathlib import Path

DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
NAMES = DATA["names"]
"""Names whose name server answers with such addresses."""
KINDS = DATA["urls"] | {
    "names with such addresses": [f"{scheme}://{name}/" for name in NAMES for scheme in ("http", "https")],
    "endless": [f"http://{'a' * 9000}.test/"],
}
HOSTILE = [url for several in KINDS.values() for url in several]
"""URLs that would lead a careless fetcher behind the firewall; the canary listens at ``{port}``."""
