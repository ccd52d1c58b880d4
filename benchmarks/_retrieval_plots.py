"""Plots of the retrieval benchmark. Needs matplotlib.

Run: ``python benchmarks/_retrieval_plots.py`` draws the picture of the documentation anew, from the figures
that ``retrieval.py --record`` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

DOCS: Final = Path(__file__).parents[1] / "docs"
EMBEDDING: Final = "wordllama"
CUTOFFS: Final = (2, 5, 10, 20)
COLOURS: Final = {
    "similarity": "#8a9199",
    "words": "#b8a25a",
    "similarity+words": "#6b8f71",
    "eager": "#5aa9c9",
    "mmr": "#c98bb0",
    "pagerank": "#2a6f97",
    "wordless": "#9fc0d4",
}
ACROSS: Final = 4

Row = Mapping[str, Any]


def main() -> None:
    """Draw recall by strategy as docs/figures has it, of the sets with their own links."""
    recorded = json.loads((DOCS / "figures" / "retrieval.json").read_text())["rows"]
    rows = [
        {"set": name.partition(", ")[0], "strategy": strategy, **_recalls(values)}
        for name, row in recorded.items()
        if name.endswith(f", {EMBEDDING}") and "similarity" in row["values"]
        for strategy, values in row["values"].items()
    ]
    draw_curves(rows, DOCS / "images" / f"recall-{EMBEDDING}.svg")


def _recalls(values: Row) -> dict[str, float]:
    few, many = values["R@2 / 5 / 20"], values["R@5 / 10 / 20"]
    return {f"recall@{k}": share / 100 for k, share in zip(CUTOFFS, (few[0], *many), strict=True)}


def draw_curves(rows: Sequence[Row], path: Path) -> None:
    """Recall among the first 2 to 20, one plot for each set, one line for each strategy."""
    names = list(dict.fromkeys(row["set"] for row in rows))
    figure, places = _figure(len(names))
    for axes, name in zip(places, names, strict=True):
        for row in rows:
            if row["set"] == name:
                recalls = [100 * row[f"recall@{k}"] for k in CUTOFFS]
                colour = COLOURS.get(row["strategy"])
                axes.plot(CUTOFFS, recalls, marker="o", label=row["strategy"], color=colour)
        axes.set_title(name)
        axes.set_xticks(CUTOFFS)
        axes.set_xlabel("first k")
        axes.set_ylabel("recall, %")
        axes.set_ylim(0, 101)
    lines, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=len(labels))
    _save(figure, path)


def draw_gains(rows: Sequence[Row], path: Path) -> None:
    """Gain in recall@5 over dense search, with 95 % intervals, one plot for each set."""
    names = list(dict.fromkeys(row["set"] for row in rows))
    figure, places = _figure(len(names))
    left_out = {"similarity"}
    for axes, name in zip(places, names, strict=True):
        own = [row for row in rows if row["set"] == name and row["strategy"] not in left_out]
        for at, row in enumerate(own):
            gain = row["gain_over_dense"]["recall@5"]
            low, high = gain["interval"]
            error = [[100 * (gain["value"] - low)], [100 * (high - gain["value"])]]
            colour = COLOURS.get(row["strategy"])
            axes.errorbar([100 * gain["value"]], [at], xerr=error, fmt="o", capsize=4, color=colour)
        axes.axvline(0, color="#8a9199", linewidth=1)
        axes.set_yticks(range(len(own)), [row["strategy"] for row in own])
        axes.invert_yaxis()
        axes.set_title(name)
        axes.set_xlabel("points of recall@5 over dense")
    _save(figure, path)


def _figure(count: int) -> tuple[Figure, Sequence[Axes]]:
    """A figure with so many plots, a few in a row."""
    across = min(ACROSS, count)
    down = -(-count // across)
    figure = Figure(figsize=(3.4 * across, 3.2 * down), layout="constrained")
    places = figure.subplots(down, across, squeeze=False).flatten()
    for unused in places[count:]:
        unused.remove()
    return figure, places[:count]


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": path.stem}):  # the same figures make the same file
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {})


if __name__ == "__main__":
    main()
