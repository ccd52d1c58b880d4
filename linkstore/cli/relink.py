"""``linkstore relink``: makes the links again that depend on the whole corpus."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from linkstore.cli.index import extractors
from linkstore.cli.options import JsonOption, StoreOption
from linkstore.cli.output import printable, stdout, write_json
from linkstore.cli.stores import core_opened


def relink(
    store: StoreOption,
    links: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="Link extractors; default mention,entity.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Link the documents of a store by the names in their texts.

    Finds titles that texts mention, and names that two or three texts share, in all documents, whichever way
    they were added. Replaces all links of these kinds; embeds nothing.
    """
    from linkstore.ingest import CORPUS_LINKS, link_corpus

    chosen = extractors(links or CORPUS_LINKS)
    with core_opened(store) as opened_store:
        done = link_corpus(opened_store, chosen)
    if json:
        write_json(asdict(done))
        return
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in done.links.items())
    stdout().print(f"documents {done.documents:,}, {done.changed:,} with other links than before")
    stdout().print(f"links     {printable(kinds) or 'none'} written")
