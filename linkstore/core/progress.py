"""A bar that shows how far work is: of rich in a terminal, of tqdm in a notebook, and none elsewhere."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from linkstore.core.calls import Progress

if TYPE_CHECKING:
    from rich.console import Console

_MAX_SHOWN: Final = 40
"""Characters of a page's name beside a bar."""
_DELAY: Final = 1.0
"""Seconds before a notebook, which keeps what it was shown, shows a bar."""


@contextmanager
def show_progress(unit: str = "pages", console: Console | None = None) -> Iterator[Progress | None]:
    """Show a bar while the context lasts, and yield the function that moves it.

    Yield None where nobody would see it: stderr is no terminal, and the program no notebook with tqdm.

    Args:
        unit: What is counted.
        console: Where it is shown; default stderr.
    """
    if console is None and is_notebook():
        with _show_in_notebook(unit) as advance:
            yield advance
    elif console is None and not (sys.stderr is not None and sys.stderr.isatty()):
        yield None
    else:
        with _show_in_terminal(unit, console) as advance:
            yield advance


def is_notebook() -> bool:
    """Say whether the program runs in the kernel of a notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def _show_in_notebook(unit: str) -> Iterator[Progress | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that widgets are missing; the bar is text then
            from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    with tqdm(unit=f" {unit}", leave=False, delay=_DELAY) as bar:

        def advance(done: int, total: int, page: str) -> None:
            bar.total = total or None
            bar.set_postfix_str(page[-_MAX_SHOWN:], refresh=False)
            bar.update(done - bar.n)

        yield advance


@contextmanager
def _show_in_terminal(unit: str, console: Console | None) -> Iterator[Progress]:
    from rich import progress
    from rich.console import Console

    rate = progress.TextColumn("{task.fields[rate]}")
    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), rate, progress.TimeRemainingColumn())
    shown = console or Console(stderr=True)
    with progress.Progress(*columns, console=shown, transient=True) as bar:
        task = bar.add_task(unit, total=None, rate="")

        def advance(done: int, total: int, page: str) -> None:
            speed = bar.tasks[0].speed
            speed_text = "" if speed is None else f"{speed:,.0f} {unit}/s"
            bar.update(task, completed=done, total=total or None, description=page, rate=speed_text)

        yield advance
