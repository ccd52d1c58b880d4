"""Measured figures on the pages come from the files that the benchmarks write."""

from __future__ import annotations

import argparse
import json
import re
import sys

import pytest
from documented import ROOT
from pyromark import Options, html
from selectolax.lexbor import LexborHTMLParser

DOCS = ROOT / "docs"
PAGES = sorted(
    path
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]
    if path.parent.name not in {"decisions", "api"}  # dated records; docstrings
)
ROWS = {
    "10000": {"documents": 10000, "p50, ms": 3.62, "R@2 / 5": [76.5, 96.0], "note": None},
    "100000": {"documents": 100000, "p50, ms": 7.3, "R@2 / 5": [70.0, 100.0], "note": "busy"},
}


def named(path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture
def figures(monkeypatch, tmp_path):
    """The module that fills figures in, with the file ``growth``."""
    monkeypatch.syspath_prepend(DOCS)
    import generate_figures

    rows = {name: {"values": values} for name, values in ROWS.items()}
    (tmp_path / "growth.json").write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr(generate_figures, "FIGURES", tmp_path)
    generate_figures._rows.cache_clear()
    yield generate_figures
    generate_figures._rows.cache_clear()


@pytest.mark.parametrize(
    ("reference", "shown"),
    [
        ("growth; 10000; documents", "10,000"),
        ("growth; 10000; p50, ms | .1f", "3.6"),
        ("growth; 10000; R@2 / 5 | .1f", "76.5 / 96.0"),
        ("growth; 10000; R@2 / 5; 1 | .0f", "96"),
        ("growth; 100000; note", "busy"),
        ("growth; 10000; note", ""),
        ("growth; 100000; p50, ms ÷ growth; 10000; p50, ms | .1f", "2.0"),
        ("growth; 100000; p50, ms | 2", "7.3"),
        ("0.1 + 0.15 | .1f", "0.2"),  # a half to the even digit, whatever the sum of floats is
        ("44.25 | .1f", "44.2"),
        ("growth; 100000; p50, ms × 100 | 2", "730"),  # noqa: RUF001
        ("growth; 100000; p50, ms ÷ 1000 | 2", "0.0073"),
        ("growth; 100000; p50, ms − growth; 100000; p50, ms | 2", "0"),  # noqa: RUF001
        ("growth; 100000; p50, ms × 60 − 8 | ,.0f", "430"),  # noqa: RUF001
    ],
)
def test_a_mark_in_a_sentence_is_filled_with_its_figure(figures, reference, shown):
    text = figures.filled(f"It took <!--= {reference} -->1<!--/--> ms.")

    assert text == f"It took <!--= {reference} -->{shown}<!--/--> ms."
    assert figures.filled(text) == text


def test_a_table_has_a_column_for_each_row(figures):
    mark = (
        "<!--= growth, a column for each row\n| documents | {documents} |\n| p50 | **{p50, ms | .1f}** |\n-->"
    )

    assert figures.filled(f"{mark}<!--/-->\n") == (
        f"{mark}\n\n"
        "| documents | 10,000 | 100,000 |\n|---|---|---|\n| p50 | **3.6** | **7.3** |\n\n<!--/-->\n"
    )


def test_a_table_has_a_line_for_each_row_or_for_those_it_names(figures):
    head = "| documents | p50 |\n|---|---|"
    repeated = f"<!--= growth\n{head}\n| {{documents}} | {{p50, ms | .1f}} |\n-->"
    chosen = f"<!--= growth\n{head}\n[100000] | many | {{p50, ms | .1f}} |\n-->"

    assert figures.filled(f"{repeated}<!--/-->") == (
        f"{repeated}\n\n{head}\n| 10,000 | 3.6 |\n| 100,000 | 7.3 |\n\n<!--/-->"
    )
    assert figures.filled(f"{chosen}<!--/-->") == f"{chosen}\n\n{head}\n| many | 7.3 |\n\n<!--/-->"


def test_how_a_table_is_made_may_stand_in_a_file(figures):
    (figures.FIGURES / "tables").mkdir()
    (figures.FIGURES / "tables" / "sizes.txt").write_text(
        "growth, a column for each row\n| n | {documents} |\n"
    )

    filled = figures.filled("<!--= table sizes -->\n\n| old |\n\n<!--/-->\n")

    assert filled == "<!--= table sizes -->\n\n| n | 10,000 | 100,000 |\n|---|---|---|\n\n<!--/-->\n"
    assert figures.filled(filled) == filled


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!--= table sizes --><!--/-->", "there is no docs/figures/tables/sizes.txt"),
        ("took <!--= other; 1; p50 -->3<!--/-->", "no docs/figures/other.json"),
        ("took <!--= growth; 30000; p50 -->3<!--/-->", "'30000' is not there; there are: '10000', '10"),
        (
            "took <!--= growth; 10000; p99 -->3<!--/-->",
            "'p99' is not there; there are: 'documents'",
        ),
        ("took <!--= growth; 10000; p50, ms -->3<!--/-->", "say with how many digits"),
        ("took\n<!--= growth; 10000; documents -->3<!--/-->", "a line cannot begin with a mark"),
        ("took <!--= growth; 10000; R@2 / 5; 7 -->3<!--/-->", "'7' is not there; there are: '0', '1'"),
        ("took <!--= growth; 10000; documents -->3", "lack their beginning or their end"),
        ("took <!--= growth; 10000; documents -->3<!--/--> or 4<!--/-->", "lack their beginning"),
        ("<!--= growth, a column for each row\n{documents}\n--><!--/-->", "is not | label | cell |"),
        ("<!--= growth\n[30000] | {documents} |\n--><!--/-->", "'30000' is not there"),
        ("<!--= growth\n| {p99} |\n--><!--/-->", "'p99' is not there"),
    ],
)
def test_a_mark_that_cannot_be_filled_says_why(figures, text, message):
    with pytest.raises(figures.FigureError, match=re.escape(message)):
        figures.filled(text)


@pytest.fixture
def reporting(monkeypatch, tmp_path):
    """What benchmarks share; it records below the test's folder."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import _report

    monkeypatch.setattr(_report, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(sys, "argv", ["/home/me/benchmarks/growth.py", "--data", "/home/me/data", "--record"])
    return _report


def recorded(tmp_path) -> dict:
    return json.loads((tmp_path / "figures" / "growth.json").read_text())["rows"]


def test_what_a_benchmark_records_says_how_it_was_measured(reporting, tmp_path, capsys):
    reporting.report("growth", list(ROWS.values()), as_json=True, record_as="growth")

    row = recorded(tmp_path)["10000"]
    assert row["values"] == ROWS["10000"]
    assert row["command"] == "python benchmarks/growth.py --data DIR --record"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])
    assert re.fullmatch(r"\d+ cores, \d+ GiB", row["machine"])
    assert "usearch" in row["versions"]
    assert json.loads(capsys.readouterr().out)["rows"] == list(ROWS.values())


def test_a_later_run_replaces_its_own_rows_and_keeps_the_others(reporting, tmp_path):
    reporting.record("growth", ROWS)
    reporting.record("growth", {"100000": {"documents": 3}, "1000000": {"documents": 4}})

    found = {name: row["values"]["documents"] for name, row in recorded(tmp_path).items()}
    assert list(found.items()) == [("10000", 10000), ("100000", 3), ("1000000", 4)]


def test_nothing_is_recorded_unless_it_is_asked_for(reporting, tmp_path, capsys):
    reporting.listed("growth", list(ROWS.values()), as_json=False)

    assert "3.62" in capsys.readouterr().out
    assert not (tmp_path / "figures").exists()


def test_the_option_takes_the_name_of_the_script(reporting):
    parser = argparse.ArgumentParser(prog="growth.py")
    reporting.add_output(parser)

    assert [parser.parse_args(given).record for given in ([], ["--record"], ["--record", "big"])] == [
        None,
        "growth",
        "big",
    ]


FILES = sorted((DOCS / "figures").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_every_recorded_row_says_where_it_comes_from_and_nothing_of_whose_machine(path):
    for row in json.loads(path.read_text())["rows"].values():
        assert row["machine"]
        assert row.get("date") or "carried over" in row["note"]
        if path.stem != "carried":  # figures that no benchmark writes
            assert re.match(r"python benchmarks/\w+\.py", row["command"])
            assert (ROOT / row["command"].split()[1]).exists()
    assert not re.search(r"/(home|work|tmp|root)/", path.read_text())


def test_every_file_of_figures_is_shown_on_a_page():
    pages = "".join(page.read_text() for page in PAGES)
    tables = re.findall(r"<!--= table (.*?) -->", pages)
    files = {path.stem: path.read_text() for path in (DOCS / "figures" / "tables").iterdir()}
    marks = "".join(re.findall(r"<!--= .*?-->", pages, re.DOTALL)) + "".join(
        f" {text}" for text in files.values()
    )

    assert set(tables) == set(files)
    assert [path.stem for path in FILES if not re.search(rf"[= {{]{re.escape(path.stem)}[;,\n]", marks)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if "<!--=" in page.read_text()], ids=named)
def test_readers_see_no_mark_and_whole_tables(page):
    """As CommonMark with tables says: GitHub and PyPI read it so."""
    shown = LexborHTMLParser(html(page.read_text(), options=Options.ENABLE_TABLES))

    assert "<!--" not in shown.body.text()
    assert "-->" not in shown.body.text()
    written = re.sub(r"<!--=.*?-->", "", page.read_text(), flags=re.DOTALL)
    assert len(shown.css("table")) == len(re.findall(r"^\|.*\|\n\|[-|]+\|$", written, re.MULTILINE))
    assert not [cell.text() for cell in shown.css("p") if cell.text().startswith("|")]


def test_the_picture_of_recall_shows_the_recorded_figures(monkeypatch):
    """If this fails, run ``python benchmarks/_retrieval_plots.py``."""
    pytest.importorskip("matplotlib", reason="needs matplotlib, which is not installed")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from _retrieval_plots import COLOURS

    names = {colour: strategy for strategy, colour in COLOURS.items()}
    picture = (DOCS / "images" / "recall-wordllama.svg").read_text()
    recorded = json.loads((DOCS / "figures" / "retrieval.json").read_text())["rows"]
    drawn = 0
    for axes in re.split(r'<g id="axes_\d+">', picture)[1:]:
        values = next(
            row["values"]
            for name, row in recorded.items()
            if f"<!-- {name.partition(',')[0]} -->" in axes
            and name.endswith(", wordllama")
            and "similarity" in row["values"]
        )
        frame = re.search(r'<g id="patch_\d+">\s*<path d="([^"]*)"', axes)
        heights = [float(y) for y in re.findall(r"[\d.]+ ([\d.]+)", frame[1])]
        for line, colour in re.findall(
            r'<path d="([^"]*)" clip-path[^>]*style="fill: none; stroke: (#\w+)', axes
        ):
            if colour in names:
                pixels = [float(y) for y in re.findall(r"[\d.]+ ([\d.]+)", line)]
                shown = [101 * (max(heights) - y) / (max(heights) - min(heights)) for y in pixels]
                recalls = values[names[colour]]
                expected = [recalls["R@2 / 5 / 20"][0], *recalls["R@5 / 10 / 20"]]
                assert shown == pytest.approx(expected, abs=0.1), (names[colour], axes[:200])
                drawn += 1
    assert drawn > 40


UNITS = r"ms|µs|s|seconds?|minutes?|hours?|kB|KiB|MB|MiB|GB|GiB|%|×|times|points?|documents/s|pages/s"  # noqa: RUF001
FIGURE = re.compile(
    rf"(?<![\w.#-])\d[\d,]*(?:\.\d+)?(?: (?:to|and|or|/) \d[\d,.]*\d?)*\s?(?:{UNITS})(?![\w/])"
)
LIMIT = re.compile(
    r"\b(?:at (?:most|least)|(?:more|less|longer|older|larger|greater|fewer) than|up to|within|until|every"
    r"|after|for|beyond|over|under|aim|limit|default|must|may|maximum|minimum|waits?|first)s?\b[^.|]{0,60}$",
    re.IGNORECASE,
)
"""What is said before a limit, an aim or a default, which nobody measured."""
DATED_OR_MADE = {"cli.md", "schema.md", "contract.md", "retriever.md"}
NOT_MEASURED = {
    "docs/benchmarks.md": {
        *{"24 GiB", "38 MB", "1 to 24 MB", "0.3 to 1 MB"},  # the machine and the data
        *{"95 %", "200 times"},  # what is done
    },
    "docs/explanation/what-it-costs.md": {"1 KiB"},
    "docs/explanation/mentions-and-entities.md": {"4.7 MB"},
    "docs/reference/evaluation.md": {"95 %", "10,000 times"},
    "docs/how-to/profile.md": {"95 %"},
    "docs/how-to/use-a-local-model.md": {"1.1 GB"},  # of the model
    "docs/how-to/serve-over-mcp.md": {"1 MiB", "10 s"},
    "docs/how-to/operate-cassandra.md": {"1 GiB", "8 GiB"},  # of memory that was given
    "docs/reference/cassandra.md": {"10 s", "30 s", "15 MiB", "2 s", "1 %"},
    "docs/reliability.md": {"16 MiB", "32 MiB", "64 MiB", "2 ×", "30 ×", "20 s"},  # noqa: RUF001
}


def without_marks(page) -> str:
    return re.sub(r"<!--= .*?<!--/-->", "", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in DATED_OR_MADE], ids=named)
def test_a_measured_figure_stands_in_a_mark(page):
    """Record it with its benchmark, see CONTRIBUTING.md. What nobody measured belongs in NOT_MEASURED."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", without_marks(page), flags=re.DOTALL | re.MULTILINE)
    found = {
        figure[0].replace("\n", " ")
        for figure in FIGURE.finditer(text)
        if not LIMIT.search(text[: figure.start()].replace("\n", " ")[-90:])
    }

    assert found == NOT_MEASURED.get(named(page), set())


def test_every_table_of_the_benchmarks_stands_in_a_mark():
    assert not [line for line in without_marks(DOCS / "benchmarks.md").splitlines() if line.startswith("|")]
