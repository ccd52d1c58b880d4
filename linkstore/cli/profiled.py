"""Profiles as tables and bars for a person. Imports rich and numpy: load it late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.console import Console
from rich.table import Table

from linkstore.cli.output import printable, stdout
from linkstore.cli.tables import percent, wide
from linkstore.display import amount
from linkstore.evaluation import GoldProfile, Profile, size_labels

_BAR: Final = 40
"""The longest bar, in characters."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def show_profile(profile: Profile) -> None:
    """Print what a store's links look like, and the verdict."""
    console = wide(stdout())
    console.print(
        f"{amount(profile.documents, 'document')}: {profile.reached:,} ({percent(profile.reached_share)} %)"
        f" that a link leads to, {profile.isolated:,} isolated\n"
    )
    _show_kinds(console, profile)
    sizes = dict(zip(size_labels(), profile.sizes, strict=True))
    console.print("\nLink groups by documents on their larger side; the last are hubs", style="bold")
    _show_bars(console, sizes)
    if profile.largest:
        console.print("\nLargest link groups", style="bold")
    for group in profile.largest:
        hub = "  hub" if group.hub else ""
        console.print(
            f"  {group.out:>8,} out {group.in_:>8,} in  {printable(f'{group.kind} {group.tag}')}{hub}"
        )
    if profile.gold is not None:
        _show_gold(console, profile.gold)
    console.print(f"\n{profile.verdict}", style="bold")


def bar(share: float, length: int = _BAR) -> str:
    """Return a bar of characters, at most ``length`` of them.

    Args:
        share: From 0 to 1. Anything above 0 shows.
        length: The length of a full bar.
    """
    eighths = max(round(share * length * 8), share > 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _show_bars(console: Console, counts: Mapping[str, int]) -> None:
    most = max(counts.values(), default=0) or 1
    for label, count in counts.items():
        console.print(f"  {label:>8} {count:>10,} {bar(count / most)}".rstrip())


def _show_kinds(console: Console, profile: Profile) -> None:
    table = Table("kind")
    for name in ("links", "dangling", "groups", "hubs", "edges", "edges a document"):
        table.add_column(name, justify="right")
    for kind, one in profile.links.items():
        counts = (one.links, one.dangling, one.groups, one.hubs, one.edges)
        rate = one.edges / profile.documents if profile.documents else 0.0
        table.add_row(printable(kind), *(f"{count:,}" for count in counts), f"{rate:.2f}")
    console.print(table)


def _show_gold(console: Console, gold: GoldProfile) -> None:
    console.print(f"\n{amount(gold.questions, 'question')}", style="bold")
    table = Table("kind")
    for name in ("edges at gold", "join two gold", "precision, %", "gold linked to gold, %"):
        table.add_column(name, justify="right")
    for kind, one in gold.kinds.items():
        shares = ("-" if share is None else percent(share) for share in (one.precision, one.linked_share))
        table.add_row(printable(kind), f"{one.edges:,}", f"{one.joining:,}", *shares)
    if gold.kinds:
        console.print(table)
    console.print(
        f"dense search: {percent(gold.recall_at_5)} % recall@5; of {gold.missed:,} gold documents missed,"
        f" {gold.within_reach:,} are one link from its first 10"
    )
