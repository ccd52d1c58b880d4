"""``linkstore verify``, ``linkstore repair`` and ``linkstore compact``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from linkstore.cli.beside import note_facts
from linkstore.cli.exits import DAMAGED
from linkstore.cli.options import JsonOption, StoreOption
from linkstore.cli.output import printable, stdout, write_json
from linkstore.cli.stores import core_opened

if TYPE_CHECKING:
    from linkstore.backends.base import Report


def verify(store: StoreOption, json: JsonOption = False) -> None:
    """Check a store without changing it.

    Compares all derived data with the documents. The exit code is 5 if they do not match.
    """
    with core_opened(store) as opened_store:
        report = opened_store.verify()
    _show(report, json=json, verb="found")
    if not report.sound:
        raise typer.Exit(DAMAGED)


def repair(store: StoreOption, json: JsonOption = False) -> None:
    """Repair the problems that verify finds."""
    with core_opened(store) as opened_store:
        report = opened_store.repair()
    _show(report, json=json, verb="repaired")


def compact(store: StoreOption, json: JsonOption = False) -> None:
    """Remove all traces of deleted documents from the files.

    A store does not need this to keep its size in proportion to its content. The time depends on the size of
    the store.
    """
    with core_opened(store) as opened_store:
        opened_store.compact()
        note_facts(opened_store, store)
    if json:
        write_json({"compacted": True})
    else:
        stdout().print("the store is compact", style="green")


def _show(report: Report, *, json: bool, verb: str) -> None:
    if json:
        findings = [asdict(finding) for finding in report.findings]
        write_json({"sound": report.sound, "findings": findings})
        return
    console = stdout()
    if report.sound:
        console.print("the store is sound", style="green")
    for finding in report.findings:
        examples = f": {', '.join(finding.examples)}" if finding.examples else ""
        console.print(printable(f"{verb}: {finding.problem} ({finding.count}){examples}"), style="yellow")
