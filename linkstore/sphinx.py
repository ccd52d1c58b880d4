"""An extension of Sphinx that makes a store of the HTML it has built, with an ``llms.txt`` beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.logging import getLogger

from linkstore._version import __version__
from linkstore.errors import LinkStoreError
from linkstore.ingest.builds import index_build


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension, as ``extensions = ["linkstore.sphinx"]`` in ``conf.py`` asks for.

    ``linkstore_store`` is the folder of the store, from that of ``conf.py``; default ``linkstore`` beside the
    output.
    """
    app.add_config_value("linkstore_store", "", "")
    app.connect("build-finished", _index)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}


def _index(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    own = app.config.linkstore_store
    place = Path(app.confdir, own) if own else Path(app.outdir).parent / "linkstore"
    base = f"{app.config.html_baseurl.rstrip('/')}/" if app.config.html_baseurl else ""
    try:
        pages = index_build(app.outdir, place, app.config.project or "Documentation", base)
    except LinkStoreError as error:
        raise ExtensionError(f"linkstore: {error}") from error
    getLogger(__name__).info("linkstore: %d pages are in %s", pages, place)
