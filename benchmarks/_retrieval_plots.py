"""Plots of the retrieval benchmark. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

CUTOFFS: Final = (2, 5, 10, 20)
COLOURS: Final = {
    "dense": "#8a9199",
    "bm25": "#b8a25a",
    "dense+bm25": "#6b8f71",
    "eager": "#5aa9c9",
    "mmr": "#c98bb0",
    "pagerank": "#d98032",
    "pathbeam": "#7a5aa9",
    "default": "#2a6f97",
}

Row = Mapping[str, Any]


def draw_curves(rows: Sequence[Row], path: Path) -> None:
    """Recall among the first 2 to 20, one plot for each set, one line for each strategy."""
    names = list(dict.fromkeys(row["set"] for row in rows))
    figure = Figure(figsize=(4 * len(names), 3.6), layout="constrained")
    for axes, name in zip(_row_of(figure, len(names)), names, strict=True):
        for row in rows:
            if row["set"] == name:
                recalls = [100 * row[f"recall@{k}"] for k in CUTOFFS]
                colour = COLOURS.get(row["strategy"])
                axes.plot(CUTOFFS, recalls, marker="o", label=row["strategy"], color=colour)
        axes.set_title(name)
        axes.set_xticks(CUTOFFS)
        axes.set_xlabel("first k")
        axes.set_ylim(0, 101)
    figure.axes[0].set_ylabel("recall, %")
    figure.axes[-1].legend(fontsize=8)
    _save(figure, path)


def draw_gains(rows: Sequence[Row], path: Path) -> None:
    """Gain in recall@5 over dense search, with 95 % intervals, one plot for each set."""
    names = list(dict.fromkeys(row["set"] for row in rows))
    figure = Figure(figsize=(4 * len(names), 3.2), layout="constrained")
    for axes, name in zip(_row_of(figure, len(names)), names, strict=True):
        own = [row for row in rows if row["set"] == name and row["strategy"] != "dense"]
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


def _row_of(figure: Figure, count: int) -> Sequence[Axes]:
    return figure.subplots(1, count, squeeze=False)[0]


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {})
