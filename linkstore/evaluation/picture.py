"""A profile as a picture. Needs the extra ``plot``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from linkstore.arguments import path_of, require
from linkstore.errors import EvaluationError, MissingExtraError
from linkstore.evaluation.profiles import Profile, size_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS: Final = (".png", ".svg")
_BLUE: Final = "#2a6f97"
_ORANGE: Final = "#d98032"
_GREY: Final = "#b8bec4"


def require_picture(path: str | Path) -> None:
    """Raise unless a picture can be drawn at a path.

    Raises:
        EvaluationError: If the file's name says no known format, or its folder does not exist.
        MissingExtraError: If matplotlib is not installed.
    """
    file = path_of("path", path)
    if file.suffix.lower() not in FORMATS:
        raise EvaluationError(f"a picture must be {' or '.join(FORMATS)}, not {path}")
    if not file.parent.is_dir():
        raise EvaluationError(f"{path} cannot be drawn: the folder {file.parent} does not exist")
    if find_spec("matplotlib") is None:
        raise MissingExtraError("a picture of a profile", "plot")


def draw_profile(profile: Profile, path: str | Path) -> None:
    """Draw links by kind, link groups by size, the documents reached, and edge precision where known.

    Args:
        profile: What to draw.
        path: A .png or .svg file, which is replaced if it exists.

    Raises:
        EvaluationError: If the file's name says no known format, or its folder does not exist.
        MissingExtraError: If matplotlib is not installed.
        OSError: If the file cannot be written.
    """
    require(Profile, "the Profile of a store", profile=profile)
    require_picture(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    (links, sizes), (documents, gold) = figure.subplots(2, 2)
    _draw_links(links, profile)
    _draw_sizes(sizes, profile)
    _draw_documents(documents, profile)
    _draw_gold(gold, profile)
    figure.suptitle(f"{profile.documents:,} documents")
    metadata: dict[str, Any] = {"Date": None} if Path(path).suffix.lower() == ".svg" else {}
    figure.savefig(path, dpi=150, metadata=metadata)


def _draw_links(axes: Axes, profile: Profile) -> None:
    kinds = list(profile.links)
    dangling = [profile.links[kind].dangling for kind in kinds]
    joined = [profile.links[kind].links - lost for kind, lost in zip(kinds, dangling, strict=True)]
    axes.barh(kinds, joined, color=_BLUE, label="other links")
    axes.barh(kinds, dangling, left=joined, color=_GREY, label="lead to no document")
    axes.set_title("links by kind")
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2, frameon=False)


def _draw_sizes(axes: Axes, profile: Profile) -> None:
    labels = size_labels()
    bars = axes.bar(labels, profile.sizes, color=[*[_BLUE] * (len(labels) - 1), _ORANGE])
    axes.bar_label(bars, fontsize=8)
    axes.set_yscale("symlog")
    axes.margins(y=0.15)
    axes.set_title("link groups by size (orange: hubs)")
    axes.set_xlabel("documents on the larger side")
    axes.tick_params(axis="x", labelsize=8, rotation=30)


def _draw_documents(axes: Axes, profile: Profile) -> None:
    joined_only = profile.documents - profile.isolated - profile.reached
    parts = {
        "reached by a link": (profile.reached, _BLUE),
        "joined, but not reached": (max(0, joined_only), _GREY),
        "isolated": (profile.isolated, _ORANGE),
    }
    bars = axes.barh(list(parts), [n for n, _ in parts.values()], color=[one for _, one in parts.values()])
    axes.bar_label(bars, padding=3)
    axes.margins(x=0.15)
    axes.set_title("documents")
    axes.invert_yaxis()


def _draw_gold(axes: Axes, profile: Profile) -> None:
    axes.set_title("edge precision at gold documents, %")
    kinds = {} if profile.gold is None else profile.gold.kinds
    shares = {kind: 100 * one.precision for kind, one in kinds.items() if one.precision is not None}
    if shares:
        axes.bar_label(axes.barh(list(shares), list(shares.values()), color=_BLUE), fmt="%.1f", padding=3)
        axes.margins(x=0.15)
        axes.invert_yaxis()
    else:
        axes.text(0.5, 0.5, "no question with two gold documents", ha="center", va="center")
        axes.set_axis_off()
