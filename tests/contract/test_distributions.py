"""``make dist``: what may be in a wheel and in a source distribution."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from linkstore import __version__

ROOT = Path(__file__).parents[2]
METADATA = f"Name: langchain-linkstore\nVersion: {__version__}\nLicense-Expression: Apache-2.0\n"
CODE = ["linkstore/__init__.py", "linkstore/py.typed", "extractors/linkstore_extractors/html.py"]
SOURCES = [*CODE, "linkstore/explorer/web/src/main.ts", "README.md", "tests/values/test_urls.py"]
ABOUT = [
    f"langchain_linkstore-{__version__}.dist-info/{name}"
    for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
]
LICENCES = [
    f"langchain_linkstore-{__version__}.dist-info/licenses/linkstore/{name}"
    for name in ("embeddings/data/NOTICE", "explorer/web/LICENCES.txt")
]
WHEEL = [*(name.removeprefix("extractors/") for name in CODE), *ABOUT, *LICENCES]


@pytest.fixture(scope="module")
def checks():
    spec = importlib.util.spec_from_file_location("check_dist", ROOT / ".ci" / "check_dist.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_the_repository_has_is_right(checks) -> None:
    assert checks.check_wheel(WHEEL, METADATA, SOURCES) == []
    assert checks.check_archive([*SOURCES, "PKG-INFO"], SOURCES) == []


@pytest.mark.parametrize(
    "name",
    [
        "linkstore/embeddings/data/corpus.jsonl",
        "linkstore/core/__pycache__/urls.cpython-311.pyc",
        "linkstore/explorer/web/src/main.ts",
        "tests/values/test_urls.py",
        "profile.png",
    ],
)
def test_a_file_too_many_in_a_wheel_is_named(checks, name: str) -> None:
    tracked = [*SOURCES, name]  # that somebody committed it does not make it right
    assert any(one.startswith(f"{name} ") for one in checks.check_wheel([*WHEEL, name], METADATA, tracked))


@pytest.mark.parametrize(
    "name",
    [
        "tests/embedded/data/corpus.jsonl",
        "tests/embedded/.pytest_cache/README",
        "notebooks/.ipynb_checkpoints/quickstart-checkpoint.json",
        "notebooks/kb/store.db",
        "docs/figures/recall.png",
        "site/index.html",
        ".demo/docs/store.db",
        "linkstore/explorer/web/node_modules/sigma/index.js",
    ],
)
def test_a_file_too_many_in_a_source_distribution_is_named(checks, name: str) -> None:
    problems = checks.check_archive([*SOURCES, "PKG-INFO", name], [*SOURCES, name])
    assert problems == [f"{name} does not belong there: .ci/check_dist.py says what does"]


def test_a_file_that_is_not_in_the_repository_is_named(checks) -> None:
    assert checks.check_archive([*SOURCES, "PKG-INFO", "docs/draft.md"], SOURCES) == [
        "docs/draft.md is not in the repository"
    ]


@pytest.mark.parametrize("name", [*CODE, "README.md"])
def test_a_missing_file_is_named(checks, name: str) -> None:
    found = [one for one in [*SOURCES, "PKG-INFO"] if one != name]
    assert checks.check_archive(found, SOURCES) == [f"{name} is missing"]


@pytest.mark.parametrize("name", LICENCES)
def test_a_missing_licence_is_named(checks, name: str) -> None:
    problems = checks.check_wheel([one for one in WHEEL if one != name], METADATA, SOURCES)
    assert [one.endswith("is missing") for one in problems] == [True]


def test_metadata_name_the_licence_and_the_version_that_is_cited(checks) -> None:
    wrong = METADATA.replace(__version__, "9.9").replace("Apache-2.0", "MIT")
    assert len(checks.check_wheel(WHEEL, wrong, SOURCES)) == 2


def test_links_of_the_description_lead_somewhere_on_a_package_index(checks) -> None:
    right = "[here](#install), [there](https://example.org/docs)"
    assert checks.check_wheel(WHEEL, METADATA + right, SOURCES) == []
    problems = checks.check_wheel(WHEEL, METADATA + right + " and [nowhere](docs/index.md)", SOURCES)
    assert [one.endswith("](docs/index.md)") for one in problems] == [True]
