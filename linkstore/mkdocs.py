"""A plugin of MkDocs that makes a store of the site it has built, with an ``llms.txt`` beside it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal

from mkdocs.config import config_options
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin

from linkstore.errors import LinkStoreError
from linkstore.ingest.builds import index_build


class LinkStoreConfig(Config):  # type: ignore[no-untyped-call]
    """The settings of the plugin in ``mkdocs.yml``."""

    store = config_options.Type(str, default=".linkstore")
    """The folder of the store, from that of ``mkdocs.yml``."""


class LinkStorePlugin(BasePlugin[LinkStoreConfig]):  # type: ignore[no-untyped-call]
    """The plugin ``linkstore``. ``mkdocs serve``, which builds at each change, indexes nothing."""

    def __init__(self) -> None:
        self._builds = True

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        """Record what MkDocs was started for."""
        self._builds = command != "serve"

    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Index the site.

        Raises:
            PluginError: If it cannot be indexed; the build ends with it.
        """
        if not self._builds:
            return
        place = Path(config.config_file_path or "").parent / self.config.store
        base = f"{config.site_url.rstrip('/')}/" if config.site_url else ""
        try:
            pages = index_build(config.site_dir, place, config.site_name, base)
        except LinkStoreError as error:
            raise PluginError(f"linkstore: {error}") from error
        logging.getLogger("mkdocs.plugins.linkstore").info("%d pages are in %s", pages, place)
