"""Draws the two charts at the beginning of docs/benchmarks.md, as SVG, from the files in docs/figures.

A chart is a list of groups of bars, with their figures. Its colours follow the scheme of the reader's system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from generate_figures import _rows

WIDTH = 760
LABEL = 250
BAR = 15
GAP = 14
STYLE = """text{font:13px system-ui,sans-serif;fill:#24292f}.t{font-weight:600;font-size:15px}.n{fill:#57606a}
.g{fill:#fff}.a{fill:#afb8c1}.b{fill:#0969da}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.n{fill:#9198a1}.g{fill:#0d1117}.a{fill:#59636e}.b{fill:#4493f8}}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Bars in groups.

    Args:
        title: Above it, with the unit.
        names: Of the bars of each group, as the legend has them.
        groups: Labels, each with its values.
        digits: After the point.
    """

    title: str
    names: tuple[str, ...]
    groups: tuple[tuple[str, tuple[float, ...]], ...]
    digits: int = 0


def pages() -> dict[str, str]:
    """The charts: name below docs/ → SVG."""
    return {"images/benchmark-links.svg": draw(links()), "images/benchmark-size.svg": draw(size())}


def links() -> Chart:
    """What links add: the share of questions, or of gold documents, that two searches find."""
    sets = (
        ("HotpotQA, several passages", "hotpotqa_train, mention+entity"),
        ("MuSiQue, several passages", "musique_train, mention+entity"),
        ("OTT-QA, a linked page", "ottqa_links, hyperlink"),
        ("one passage (control)", "single_hop, mention+entity"),
    )
    groups = [
        (label, tuple(_first_five(f"{row}, wordllama", name) for name in ("similarity", "pagerank")))
        for label, row in sets
    ]
    manuals = [_rows("hyperdocs")[f"all, {name}, wordllama"] for name in ("dense", "linkstore")]
    groups.append(("14 manuals, what they ask themselves", tuple(row["R@5 / 10 / 20"][0] for row in manuals)))
    peps = [_rows("page_questions")[name]["pages"][1] for name in ("dense", "default")]
    groups.append(("Python's PEPs, plain questions", tuple(peps)))
    manual = [_rows("demo_manual")[name] for name in ("similarity alone", "default")]
    shares = (100 * row["among the first 3"] / row["questions"] for row in manual)
    groups.append(("SQLite's manual, plain, first 3", tuple(shares)))
    title = "Found among the first five, % (embedding wordllama)"
    return Chart(title=title, names=("similarity alone", "linkstore's default"), groups=tuple(groups))


def _first_five(row: str, strategy: str) -> float:
    recall: float = _rows("retrieval")[row][strategy]["R@5 / 10 / 20"][0]
    return recall


def size() -> Chart:
    """How long a question takes in stores of three sizes."""
    rows: Sequence[Any] = [_rows("scale")[pages] for pages in ("10000", "100000", "1000000")]
    return Chart(
        title="Time of a question, median, ms",
        names=("two hops (Eager)", "linkstore's default"),
        groups=tuple(
            (f"{row['pages']:,} pages", (row["depth 2 p50, ms"], row["default p50, ms"])) for row in rows
        ),
        digits=1,
    )


def draw(chart: Chart) -> str:
    """A chart as SVG."""
    longest = max(value for _, values in chart.groups for value in values)
    scale = (WIDTH - LABEL - 60) / longest
    lines, top = [f'<text class="t" x="0" y="16">{escape(chart.title)}</text>'], 30
    for number, name in enumerate(chart.names):
        left = LABEL + 180 * number
        lines.append(f'<rect class="{"ab"[number]}" x="{left}" y="{top}" width="12" height="12"/>')
        lines.append(f'<text x="{left + 18}" y="{top + 11}">{escape(name)}</text>')
    top += 30
    for label, values in chart.groups:
        middle = top + BAR * len(values) / 2 + 5
        lines.append(f'<text x="{LABEL - 10}" y="{middle:.0f}" text-anchor="end">{escape(label)}</text>')
        for number, value in enumerate(values):
            y, width = top + BAR * number, value * scale
            lines.append(
                f'<rect class="{"ab"[number]}" x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR - 2}"/>'
                f'<text class="n" x="{LABEL + width + 6:.1f}" y="{y + 11}">{value:,.{chart.digits}f}</text>'
            )
        top += BAR * len(values) + GAP
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 -12 {WIDTH + 32} {top + 16}" role="img"'
        f' aria-label="{escape(chart.title)}">\n<style>{STYLE}</style>\n'
        f'<rect class="g" x="-16" y="-12" width="{WIDTH + 32}" height="{top + 16}"/>\n{body}\n</svg>\n'
    )
