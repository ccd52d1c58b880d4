"""``linkstore delete``: remove documents by id."""

from __future__ import annotations

from typing import Annotated

import typer

from linkstore.cli.options import StoreOption
from linkstore.cli.output import note
from linkstore.cli.stores import opened
from linkstore.errors import LinkStoreError


def delete(
    ids: Annotated[list[str], typer.Argument(metavar="IDS...", help="Ids of documents.")],
    store: StoreOption,
) -> None:
    """Remove documents and their links.

    Nothing is removed if one of the ids is not there.
    """
    with opened(store) as opened_store:
        known = {document.id for document in opened_store.get_by_ids(ids)}
        unknown = [name for name in ids if name not in known]
        if unknown:
            raise LinkStoreError(f"nothing was deleted: no document has the id {', '.join(unknown)}")
        opened_store.delete(ids)
    note(f"deleted {len(known)}")
