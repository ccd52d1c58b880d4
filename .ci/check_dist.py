"""Checks what a wheel and a source distribution contain: nothing missing, and nothing too much."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = {".whl": 3_000_000, ".gz": 6_000_000}
"""Bytes that a distribution may have."""
LICENCES = ("LICENSE", "linkstore/embeddings/data/NOTICE", "linkstore/explorer/web/LICENCES.txt")
"""Of the project, of a tokenizer, and of the libraries in the page's script."""
WHEEL = (
    "linkstore/*.py",
    "linkstore/*.pyi",
    "linkstore/py.typed",
    "linkstore/cli/site/*.html",
    "linkstore/cli/sqlite.tar.xz",
    "linkstore/cli/sqlite.txt",
    "linkstore/embeddings/data/NOTICE",
    "linkstore/embeddings/data/all-MiniLM-L6-v2-tokenizer.json",
    "linkstore/explorer/static/explorer.css",
    "linkstore/explorer/static/explorer.js",
    "linkstore/ingest/wiki/mediawiki.toml",
    "linkstore/memory/words.txt",
    "linkstore_extractors/*.py",
    "linkstore_extractors/py.typed",
)
"""What may be in a wheel besides its metadata; ``*`` stands for folders, too."""
ARCHIVE = (
    *(f"extractors/{one}" if one.startswith("linkstore_extractors/") else one for one in WHEEL),
    "linkstore/explorer/web/LICENCES.txt",
    "linkstore/explorer/web/*.json",
    "linkstore/explorer/web/build.mjs",
    "linkstore/explorer/web/src/*.ts",
    "linkstore/explorer/web/src/style.css",
    ".ci/check_dist.py",
    ".ci/dist",
    ".ci/run",
    ".claude-plugin/*.json",
    ".dockerignore",
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "Dockerfile",
    "action.yml",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "compose.yaml",
    "pyproject.toml",
    "server.json",
    "zensical.toml",
    "benchmarks/*.py",
    "benchmarks/_demo_questions.json",
    "benchmarks/_off_subject.json",
    "benchmarks/hyperdocs/DATASHEET.md",
    "benchmarks/hyperdocs/*.jsonl",
    "docs/*.py",
    "docs/*.md",
    "docs/.nav.yml",
    "docs/assets/site.css",
    "docs/figures/*.json",
    "docs/figures/tables/*.txt",
    "docs/images/*.png",
    "docs/images/*.svg",
    "notebooks/*.ipynb",
    "notebooks/*.py",
    "skills/linkstore/SKILL.md",
    "tests/*.py",
    "tests/embedded/data/format-*.zip",
    "tests/memory/*dialogues.json",
    "tests/support/cassandra_server/pom.xml",
    "tests/support/crash_trace.c",
    "tests/support/dialogues/*.json",
    "tests/support/hostile_urls.json",
)
"""What may be in a source distribution besides its metadata."""


def main() -> None:
    """Check all distributions in a folder, and end with 1 if something is wrong with one."""
    folder = Path(sys.argv[1])
    wheels, archives = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    problems = [] if len(wheels) == len(archives) == 1 else ["there must be one wheel and one archive"]
    tracked = _list_tracked()
    for path in wheels:
        with zipfile.ZipFile(path) as wheel:
            found, metadata = wheel.namelist(), _read_metadata(wheel)
        problems += [f"{path.name}: {one}" for one in check_wheel(found, metadata, tracked)]
    for path in archives:
        with tarfile.open(path) as archive:
            names = [one.name.partition("/")[2] for one in archive.getmembers() if not one.isdir()]
        problems += [f"{path.name}: {one}" for one in check_archive(names, tracked)]
    for path in (*wheels, *archives):
        size, most = path.stat().st_size, LARGEST[path.suffix]
        print(f"{path.name}: {size:,} bytes")
        if size > most:
            problems.append(f"{path.name} has {size:,} bytes, more than {most:,}")
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(bool(problems))


def check_wheel(names: Iterable[str], metadata: str, tracked: Iterable[str]) -> list[str]:
    """Return what is wrong with a wheel of these files, of those that the repository has."""
    found = {re.sub(r"^langchain_linkstore-[^/]+\.dist-info/", "dist-info/", name) for name in names}
    packages = [name.removeprefix("extractors/") for name in tracked]
    expected = {name for name in packages if name.startswith(("linkstore/", "linkstore_extractors/"))}
    expected = {name for name in expected if not name.startswith("linkstore/explorer/web/")}
    about = {f"dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    about |= {f"dist-info/licenses/{name}" for name in LICENCES}
    problems = _compare(found, expected | about, (*WHEEL, *about))
    if "License-Expression: Apache-2.0" not in metadata:
        problems.append("the metadata do not name the licence")
    relative = re.findall(r"\]\((?!https?:|#)[^)]*\)", metadata)
    problems += [
        f"the description has a link that leads nowhere on a package index: {one}" for one in relative
    ]
    version = re.search(r"^Version: (\S+)$", metadata, re.MULTILINE)
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    if version is None or cited is None or version[1] != cited[1]:
        problems.append("CITATION.cff names another version")
    return problems


def check_archive(names: Iterable[str], tracked: Iterable[str]) -> list[str]:
    """Return what is wrong with a source distribution of these files, of those that the repository has."""
    return _compare(set(names), {*tracked, "PKG-INFO"}, (*ARCHIVE, "PKG-INFO"))


def _compare(found: set[str], expected: set[str], allowed: Collection[str]) -> list[str]:
    stray = {name for name in found if not any(fnmatchcase(name, pattern) for pattern in allowed)}
    return [
        *(f"{name} does not belong there: .ci/check_dist.py says what does" for name in sorted(stray)),
        *(f"{name} is not in the repository" for name in sorted(found - expected - stray)),
        *(f"{name} is missing" for name in sorted(expected - found)),
    ]


def _list_tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name]


def _read_metadata(wheel: zipfile.ZipFile) -> str:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return wheel.read(name).decode()


if __name__ == "__main__":
    main()
