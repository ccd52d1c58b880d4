"""Reads one page, in this process or in another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.documents import Document

from linkstore.errors import LinkError, LinkStoreError
from linkstore.extraction import Chunk
from linkstore.gc_pause import collection_paused
from linkstore.ingest.documents import Linkers, page_documents
from linkstore.ingest.html.pages import UnreadablePageError

_LOG = logging.getLogger("linkstore.ingest")
Read = Callable[[], Sequence[Chunk] | Sequence[Document]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage:
    """The result of reading a page.

    Args:
        documents: In order; none if there is a problem.
        left_out: See :class:`~linkstore.extraction.Page`.
        plain: See :class:`~linkstore.extraction.Page`.
        disbelieved: See :class:`~linkstore.extraction.Page`.
        replaced: See :class:`~linkstore.extraction.Page`.
        guessed: See :class:`~linkstore.extraction.Page`.
        problem: Why the page was not read.
        unseen: Whether the page may still be there, as after an error of the disk.
    """

    documents: tuple[Document, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    plain: int = 0
    disbelieved: tuple[str, ...] = ()
    replaced: int = 0
    guessed: bool = False
    problem: str | None = None
    unseen: bool = False


def read_page(url: str, read: Read, linkers: Linkers) -> ReadPage:
    """Read a page. One page ends no run: a fault of a reader or extractor, whoever wrote it, is a problem.

    Args:
        url: Names the page in the log.
        read: See :class:`~linkstore.ingest.SourcePage`.
        linkers: Find the links.

    Raises:
        LinkStoreError: If the run cannot go on, such as for want of an extra.
    """
    try:
        found, documents = collection_paused(lambda: _read(read, linkers))
    except (UnreadablePageError, LinkError) as error:
        return ReadPage(problem=str(error))
    except LinkStoreError:
        raise
    except OSError as error:
        return ReadPage(problem=str(error), unseen=True)
    except Exception as error:  # noqa: BLE001 (see above)
        _LOG.info("reading %s failed", url, exc_info=True)
        return ReadPage(problem=f"reading it failed: {type(error).__name__}: {error}")
    page = found[0].page if found and isinstance(found[0], Chunk) else None
    return ReadPage(
        documents=documents,
        left_out=page.left_out if page else {},
        plain=page.plain if page else 0,
        disbelieved=page.disbelieved if page else (),
        replaced=page.replaced if page else 0,
        guessed=page is not None and page.guessed,
        problem=None if documents else "it has no text",
    )


def _read(read: Read, linkers: Linkers) -> tuple[Sequence[Chunk] | Sequence[Document], tuple[Document, ...]]:
    found = read()
    return found, page_documents(found, linkers)
