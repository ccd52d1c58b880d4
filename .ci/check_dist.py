"""Checks what a wheel and a source distribution contain: nothing missing, and nothing too much."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "linkstore": ROOT / "linkstore",
    "linkstore_extractors": ROOT / "extractors" / "linkstore_extractors",
}
LARGEST = {".whl": 2_000_000, ".gz": 6_000_000}
"""Bytes that a distribution may have."""
UNWANTED = re.compile(r"node_modules|__pycache__|\.pyc$|\.ipynb_checkpoints|(^|/)\.(env|git)/|eval/|\.jsonl$")


def main() -> None:
    """Check all distributions in a folder, and end with 1 if something is wrong with one."""
    folder = Path(sys.argv[1])
    wheels, archives = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    problems = [] if len(wheels) == len(archives) == 1 else ["there must be one wheel and one archive"]
    for path in wheels:
        with zipfile.ZipFile(path) as wheel:
            problems += [
                f"{path.name}: {one}" for one in check_wheel(wheel.namelist(), _read_metadata(wheel))
            ]
    for path in archives:
        with tarfile.open(path) as archive:
            names = [name.partition("/")[2] for name in archive.getnames()]
        problems += [f"{path.name}: {one}" for one in check_archive(names)]
    for path in (*wheels, *archives):
        size, most = path.stat().st_size, LARGEST[path.suffix]
        print(f"{path.name}: {size:,} bytes")
        if size > most:
            problems.append(f"{path.name} has {size:,} bytes, more than {most:,}")
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(bool(problems))


def check_wheel(names: Iterable[str], metadata: str) -> list[str]:
    """Return what is wrong with a wheel of these files."""
    found = set(names)
    problems = _find_unwanted(found)
    problems += [
        f"{name} does not belong in a wheel"
        for name in sorted(found)
        if not re.match(r"(linkstore|linkstore_extractors|langchain_linkstore-[^/]+\.dist-info)/", name)
        or re.match(r"linkstore/explorer/web/", name)
    ]
    for package, folder in PACKAGES.items():
        for path in _list_tracked(folder):
            name = f"{package}/{path.relative_to(folder).as_posix()}"
            if name not in found and "/explorer/web/" not in name:
                problems.append(f"{name} is missing")
    licences = [name for name in found if re.search(r"\.dist-info/(licenses/)?LICENSE$", name)]
    if not licences:
        problems.append("the licence is missing")
    if "linkstore/py.typed" not in found:
        problems.append("py.typed is missing")
    if "License-Expression: Apache-2.0" not in metadata:
        problems.append("the metadata do not name the licence")
    version = re.search(r"^Version: (\S+)$", metadata, re.MULTILINE)
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    if version is None or cited is None or version[1] != cited[1]:
        problems.append("CITATION.cff names another version")
    return problems


def check_archive(names: Iterable[str]) -> list[str]:
    """Return what is wrong with a source distribution of these files."""
    found = set(names)
    wanted = ("LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "Makefile", "tests/conftest.py")
    return [*_find_unwanted(found), *(f"{name} is missing" for name in wanted if name not in found)]


def _find_unwanted(names: Iterable[str]) -> list[str]:
    return [f"{name} does not belong there" for name in sorted(names) if UNWANTED.search(name)]


def _list_tracked(folder: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", str(folder)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def _read_metadata(wheel: zipfile.ZipFile) -> str:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return wheel.read(name).decode()


if __name__ == "__main__":
    main()
