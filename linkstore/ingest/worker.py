"""The process that reads pages for another one: see :mod:`linkstore.ingest.workers`."""

from __future__ import annotations

import faulthandler
import signal
from dataclasses import replace
from typing import Final

from langchain_core.documents import Document

from linkstore.freshpython import own_pipes
from linkstore.ingest.documents import Linkers
from linkstore.ingest.messages import SECONDS_A_PAGE, Task, packed, read_message, unpacked, write_message
from linkstore.ingest.readpage import ReadPage, read_page

_STDERR: Final = 2
"""The stream's number. Python has no object for it if the other process has none."""
Reply = tuple[ReadPage, list[tuple[str | None, str, dict[str, object]]]]
"""The result of reading; documents are separate, because theirs take long to pickle."""


def main() -> None:
    """Read pages until there are no more: one message in, one out, which is empty if it cannot be read."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one is told, and ends it
    messages, replies = own_pipes()
    try:
        job = _job(read_message(messages))
        write_message(replies, b"ready")
        while True:
            content = read_message(messages)
            faulthandler.dump_traceback_later(2 * SECONDS_A_PAGE, exit=True, file=_STDERR)
            reply = b"" if job is None else _reply(content, *job)
            faulthandler.cancel_dump_traceback_later()
            write_message(replies, reply)
    except EOFError:
        return


def _job(content: bytes) -> tuple[object, Linkers] | None:
    """Return reader and extractors, or None if they cannot be made here, as those of a script cannot."""
    try:
        task: Task = unpacked(content)
        return task.reader, Linkers(task.links, task.site)
    except Exception:  # noqa: BLE001 - whatever the constructors of others raise
        return None


def _reply(content: bytes, reader: object, linkers: Linkers) -> bytes:
    try:
        url, read = unpacked(content, reader)
        found = read_page(url, read, linkers)
        return packed(_apart(found))
    except Exception:  # noqa: BLE001 - the page is read again where the run is, which raises it there
        return b""


def _apart(found: ReadPage) -> Reply:
    fields = [(one.id, one.page_content, one.metadata) for one in found.documents]
    return replace(found, documents=()), fields


def joined(reply: Reply) -> ReadPage:
    """Return the result of reading, with its documents."""
    found, fields = reply
    documents = (Document(id=id, page_content=text, metadata=metadata) for id, text, metadata in fields)
    return replace(found, documents=tuple(documents))
