"""Runs what Markdown shows: Python and console blocks, compared with the output shown."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pdfs import to_line, write_pdf

from linkstore.cli import main
from linkstore.cli.demo import site

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECKER = doctest.OutputChecker()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block.

    Args:
        language: The word behind the fence.
        text: What is inside.
        line: Where it starts in its file, from 1.
        output: What the block shown right below it says, if that is a ``text`` block.
    """

    language: str
    text: str
    line: int
    output: str | None = None


def blocks(path: Path) -> Iterator[Block]:
    """The fenced blocks of a Markdown file, in order."""
    markdown = path.read_text()
    found = list(FENCE.finditer(markdown))
    for this, after in zip_longest(found, found[1:]):
        shown = None
        if after and after[1] == "text" and not markdown[this.end() : after.start()].strip():
            shown = after[2]
        line = markdown.count("\n", 0, this.start()) + 1
        yield Block(language=this[1], text=this[2], line=line, output=shown)


def run_markdown(path: Path, folder: Path) -> int:
    """Run the Python and console blocks of a file in order, in ``folder``; returns how many ran.

    Python blocks share their names. A Python block prints what the ``text`` block below it shows. In
    a console block each line that starts with ``$ linkstore`` is run, and prints the lines below it.
    ``...`` in shown output stands for anything. The demo's ``site`` is at hand in the folder, as are a PDF
    file in ``manuals`` and ``book.epub``.

    Raises:
        AssertionError: If a block raises, or prints something else.
    """
    with site() as pages:
        shutil.copytree(pages, folder / "site")
    write_manuals(folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    with contextlib.chdir(folder):
        for block in blocks(path):
            where = f"{path.name}:{block.line}"
            if block.language == "python":
                expect(run_python(block, names, where), block.output, where)
                count += 1
            elif block.language == "console":
                count += run_console(block, where)
    return count


def write_manuals(folder: Path) -> None:
    """Write what the page on PDF and EPUB reads."""
    pages = [
        ["Harbour manual", "Ships enter the harbour by day and by night.", "Long ships: see Pilots."],
        [
            *("Entering", "A ship calls the tower first.", "Pilots"),
            *("A pilot boards every long ship, as a rule of the port says.", "A long ship has 100 metres."),
        ],
    ]
    pdf = write_pdf(
        pages,
        links=[(0, 2, f"/Dest {to_line(1, 2)}")],
        outline=[("Entering", to_line(1, 0)), ("Pilots", to_line(1, 2))],
        info="/Title (Harbour manual)",
    )
    (folder / "manuals").mkdir()
    (folder / "manuals/harbour.pdf").write_bytes(pdf)
    (folder / "manuals/index.md").write_text("# Manuals\n\n[For pilots](harbour.pdf#page=2)\n")
    with zipfile.ZipFile(folder / "book.epub", "w") as book:
        book.writestr("OEBPS/one.xhtml", '<h1>One</h1><p>See <a href="two.xhtml#end">the end</a>.</p>')
        book.writestr("OEBPS/two.xhtml", '<h1>Two</h1><p id="end">The end.</p>')


def run_python(block: Block, names: dict[str, Any], where: str) -> str:
    """What a block prints."""
    printed = io.StringIO()
    code = compile(ast.parse("\n" * block.line + block.text), where, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def run_console(block: Block, where: str) -> int:
    """Run a block's ``linkstore`` commands; returns how many there were."""
    count = 0
    for entry in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = entry.replace("\\\n", "").partition("\n")
        words = shlex.split(command)
        if words[0] == "linkstore":
            code, out, err = linkstore(*words[1:])
            assert code == 0, f"{where}: {command}: exit code {code}: {err}"
            expect(out, shown, f"{where}: {command}")
            count += 1
    return count


def linkstore(*words: str) -> tuple[int, str, str]:
    """Run a ``linkstore`` command in this process: its exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as end:
            code = end.code
    return int(code or 0), out.getvalue(), err.getvalue()


def expect(printed: str, shown: str | None, where: str) -> None:
    """Compare what was printed with what is shown; nothing shown means nothing is printed."""
    printed, shown = _trimmed(printed), _trimmed(shown or "")
    same = CHECKER.check_output(shown, printed, doctest.ELLIPSIS)
    assert same, f"{where} prints\n{printed}\ninstead of\n{shown}"


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"
