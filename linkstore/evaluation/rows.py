"""Reads a corpus, and questions with gold answers, from JSON Lines.

Each line of a corpus is a document, ``{"id", "title", "text", "links"?}``, where links are a list of
``{"kind", "tag", "direction", "label"?, "weight"?}``. Each line of questions is ``{"question", "gold"}``,
where gold is a list of the pages, sections or ids that answer the question. Other keys and empty lines are
ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
from langchain_core.documents import Document

from linkstore.arguments import path_of
from linkstore.errors import EvaluationError, LinkError
from linkstore.links import LINKS_KEY, merge_links

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldQuestion:
    """A question and its gold answers.

    Args:
        question: The question as text.
        gold: URLs of pages or sections, or ids of documents, each once; at least one.
    """

    question: str
    gold: tuple[str, ...]


def read_corpus(path: str | Path) -> list[Document]:
    """Read documents from a file of rows.

    The text of a document is its title, a line break and its text, which is embedded. The title is also
    ``metadata["title"]``, the links are ``metadata["links"]``.

    Raises:
        EvaluationError: If a row cannot be used or an id comes twice. The message names file and line.
        OSError: If the file cannot be read.
    """
    documents = []
    line_of: dict[str, int] = {}
    for line, document in _rows(path_of("path", path), _document):
        id = str(document.id)
        if id in line_of:
            raise EvaluationError(f"{path}, line {line}: the id {id!r} is already on line {line_of[id]}")
        line_of[id] = line
        documents.append(document)
    if not documents:
        raise EvaluationError(f"{path} has no rows; a corpus needs at least one document")
    return documents


def read_questions(path: str | Path) -> list[GoldQuestion]:
    """Read questions with their gold answers from a file of rows, where a repeated answer counts once.

    Raises:
        EvaluationError: If a row cannot be used. The message names file and line.
        OSError: If the file cannot be read.
    """
    questions = [question for _, question in _rows(path_of("path", path), _question)]
    if not questions:
        raise EvaluationError(f"{path} has no rows; an evaluation needs at least one question")
    return questions


def _rows(path: Path, read: Callable[[Mapping[str, Any]], T]) -> Iterator[tuple[int, T]]:
    """Yield the value of each row, with its line number from 1."""
    with path.open("rb") as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                value = read(_object(orjson.loads(text)))
            except orjson.JSONDecodeError as error:
                raise EvaluationError(f"{path}, line {line}: invalid JSON: {error}") from error
            except (EvaluationError, LinkError) as error:
                raise EvaluationError(f"{path}, line {line}: {error}") from error
            yield line, value


def _object(row: object) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise EvaluationError(f"expected a JSON object, but this is {_shown(row)}")
    return row


def _document(row: Mapping[str, Any]) -> Document:
    id, title, text = _string(row, "id"), _string(row, "title"), _string(row, "text")
    if not id or "\0" in id:
        raise EvaluationError(f"'id' must not be empty or hold a NUL, but is {id!r}")
    whole = f"{title}\n{text}".strip()
    if not whole:
        raise EvaluationError(f"document {id!r} has neither a title nor a text")
    links = row.get("links", [])
    if not isinstance(links, list) or not all(isinstance(link, dict) for link in links):
        raise EvaluationError(
            "'links' must be a list of objects with kind, tag and direction, but is " + _shown(links)
        )
    carried = [link.to_dict() for link in merge_links(links)]
    return Document(id=id, page_content=whole, metadata={"title": title, LINKS_KEY: carried})


def _question(row: Mapping[str, Any]) -> GoldQuestion:
    question, gold = _string(row, "question"), row.get("gold")
    if not question.strip():
        raise EvaluationError("'question' is empty")
    if (
        not isinstance(gold, list)
        or not gold
        or not all(isinstance(answer, str) and answer for answer in gold)
    ):
        raise EvaluationError("'gold' must be a list of at least one answer, but is " + _shown(gold))
    return GoldQuestion(question=question, gold=tuple(dict.fromkeys(gold)))


def _string(row: Mapping[str, Any], key: str) -> str:
    if key not in row:
        raise EvaluationError(f"the row has no {key!r}")
    value = row[key]
    if not isinstance(value, str):
        raise EvaluationError(f"{key!r} must be a string, but is {_shown(value)}")
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
