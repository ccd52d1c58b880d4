"""The sets of the retrieval benchmark, in the form of ``linkstore eval``.

Gold is matched by passage and not by title, since titles repeat.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from linkstore import LinkStore, get_links
from linkstore.core.urls import Site
from linkstore.evaluate import GoldQuestion

Row = dict[str, Any]
SITES: Final = {
    "django": "usr/share/doc/python-django-doc/html",
    "git": "usr/share/doc/git-doc",
    "sqlite": "usr/share/doc/sqlite3",
}
"""Where the pages of each site lie below the folder into which all Debian packages are unpacked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSet:
    """A corpus and questions.

    Args:
        name: As in tables.
        corpus: Rows of documents.
        questions: Rows of questions.
        links: The link kinds to measure, each a choice for ``--links``; the first is the set's own.
    """

    name: str
    corpus: list[Row]
    questions: list[Row]
    links: tuple[tuple[str, ...], ...]

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write both as JSON Lines; returns the two files."""
        files = folder / f"{self.name}.corpus.jsonl", folder / f"{self.name}.questions.jsonl"
        for file, rows in zip(files, (self.corpus, self.questions), strict=True):
            file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return files


DERIVED: Final = (("mention", "entity"), ("mention",), ("entity",))
GIVEN: Final = (("hyperlink",), ("hyperlink", "entity"), ("hyperlink", "mention", "entity"))


def hotpotqa_train(data: Path) -> RowSet:
    """100 questions over 994 passages; gold are the two passages with supporting facts."""
    passages = _json(data / "hotpotqa_train" / "hotpotqa_train_corpus.json")
    corpus = _numbered((title, " ".join(map(str.strip, text))) for title, text in passages.items())
    ids = defaultdict(list)
    for row in corpus:
        ids[row["title"]].append(row["id"])
    questions = [
        _asked(
            one["question"],
            (name for title, _ in one["supporting_facts"] for name in ids[title]),
            [one["answer"]],
        )
        for one in _json(data / "hotpotqa_train" / "hotpotqa_train.json")
    ]
    return RowSet(name="hotpotqa_train", corpus=corpus, questions=questions, links=DERIVED)


def musique_train(data: Path) -> RowSet:
    """100 questions of two to four steps over 1,890 passages; gold are the supporting paragraphs."""
    corpus, ids = _musique_corpus(data)
    questions = [
        _asked(
            one["question"],
            (ids[_key(part)] for part in one["paragraphs"] if part["is_supporting"]),
            [one["answer"], *one.get("answer_aliases", ())],
        )
        for one in _json(data / "musique_train" / "musique_train.json")
    ]
    return RowSet(name="musique_train", corpus=corpus, questions=questions, links=DERIVED)


def single_hop(data: Path) -> RowSet:
    """The 105 steps of musique_train's questions that stand alone: no link is needed to answer them."""
    corpus, ids = _musique_corpus(data)
    questions = []
    for one in _json(data / "musique_train" / "musique_train.json"):
        paragraphs = {part["idx"]: part for part in one["paragraphs"]}
        questions += [
            _asked(step["question"], [ids[_key(paragraphs[step["paragraph_support_idx"]])]])
            for step in one["question_decomposition"]
            if "#" not in step["question"]
        ]
    return RowSet(name="single_hop", corpus=corpus, questions=questions, links=DERIVED)


def ottqa_links(data: Path) -> RowSet:
    """Questions over table rows and the passages that their cells link to; gold is one of those."""
    with (data / "ottqa_links" / "corpus.jsonl").open() as file:
        given = [json.loads(line) for line in file]
    with (data / "ottqa_links" / "questions.jsonl").open() as file:
        asked = [json.loads(line) for line in file]
    corpus = [
        {
            "id": one["id"],
            "title": one.get("title", ""),
            "text": one["text"],
            "links": [_link(one["id"], "in"), *(_link(target, "out") for target in one.get("links", ()))],
        }
        for one in given
    ]
    questions = [
        _asked(one["question"], [one["gold_candidates"][0]["passage"]], [one["answer"]]) for one in asked
    ]
    return RowSet(name="ottqa_links", corpus=corpus, questions=questions, links=GIVEN)


ROW_SETS: Final = {one.__name__: one for one in (hotpotqa_train, musique_train, ottqa_links, single_hop)}

HIPPORAG: Final = ("musique", "2wikimultihopqa", "hotpotqa")
"""The sets of 1,000 questions that OSU-NLP-Group/HippoRAG publishes, by the names of their files."""


def read_hipporag(folder: Path, name: str) -> RowSet:
    """Read a published set, ``NAME.json`` and ``NAME_corpus.json``, as in HippoRAG's ``reproduce/dataset``.

    Passages are rows of ``title`` and ``text``. Gold are the paragraphs with ``is_supporting``, or those of
    the ``context`` whose titles are in ``supporting_facts``, by title and by text without its spaces.

    Raises:
        SystemExit: If gold of a question is not in the corpus: then the files do not belong together.
    """
    corpus = _numbered((row["title"], row["text"]) for row in _json(folder / f"{name}_corpus.json"))
    ids = {(row["title"], _squeeze(row["text"])): row["id"] for row in corpus}
    questions = []
    for row in _json(folder / f"{name}.json"):
        gold = list(_list_hipporag_gold(row))
        lost = [title for title, text in gold if (title, text) not in ids]
        if lost or not gold:
            raise SystemExit(f"{name}: no passage {lost or 'is gold'} for {row['question']!r}")
        answers = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
        questions.append(_asked(row["question"], map(ids.__getitem__, gold), answers))
    return RowSet(name=f"{name} (1,000)", corpus=corpus, questions=questions, links=DERIVED)


def _list_hipporag_gold(row: Row) -> Iterator[tuple[str, str]]:
    if "paragraphs" in row:
        for part in row["paragraphs"]:
            if part["is_supporting"]:
                yield part["title"], _squeeze(part.get("text") or part["paragraph_text"])
    else:
        supporting = {title for title, _ in row["supporting_facts"]}
        for title, sentences in row["context"]:
            if title in supporting:
                yield title, _squeeze("".join(sentences))


def _squeeze(text: str) -> str:
    return "".join(text.split())


def site_questions(data: Path, site: str, store: LinkStore) -> list[GoldQuestion]:
    """Questions of a site's FAQ; gold are the documents that own the anchors that the answer links to.

    Args:
        data: Folder of the sets.
        site: Its name.
        store: Where its pages are indexed.

    Raises:
        SystemExit: If an anchor belongs to no document: then the site is not what the questions are about.
    """
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for document in store.scan():
        for link in get_links(document):
            if link.kind == "hyperlink" and link.leads_in:
                owners[link.tag].append(str(document.id))
    questions = []
    for row in _json(data / "docs_faq" / "questions.json"):
        if row["site"] == site:
            tags = [Site().tag(target, page="index.html") or "" for target in row["gold"]]
            lost = [target for target, tag in zip(row["gold"], tags, strict=True) if not owners.get(tag)]
            if lost:
                raise SystemExit(f"{site}: no document owns {', '.join(lost)}")
            names = dict.fromkeys(name for tag in tags for name in owners[tag])
            questions.append(GoldQuestion(question=row["question"], gold=tuple(names)))
    return questions


def faq_documents(data: Path, site: str, store: LinkStore) -> list[str]:
    """The ids of the documents of a site's FAQ pages, where its questions stand."""
    rows = _json(data / "docs_faq" / "questions.json")
    pages = {row["page"].partition("#")[0] for row in rows if row["site"] == site}
    return [str(one.id) for one in store.scan() if one.metadata["page"] in pages]


def _musique_corpus(data: Path) -> tuple[list[Row], dict[tuple[str, str], str]]:
    passages = _json(data / "musique_train" / "musique_train_corpus.json")
    corpus = _numbered((one["title"], one["text"]) for one in passages)
    return corpus, {(row["title"], row["text"]): row["id"] for row in corpus}


def _key(paragraph: Mapping[str, Any]) -> tuple[str, str]:
    return paragraph["title"], paragraph["paragraph_text"]


def _numbered(passages: Iterable[tuple[str, str]]) -> list[Row]:
    return [{"id": f"{n:06}", "title": title, "text": text} for n, (title, text) in enumerate(passages)]


def _asked(question: str, gold: Iterable[str], answers: Iterable[str] = ()) -> Row:
    return {"question": question, "gold": sorted(set(gold)), "answers": list(answers)}


def _link(target: str, direction: str) -> Row:
    return {"kind": "hyperlink", "tag": target, "direction": direction}


def _json(path: Path) -> Any:
    return json.loads(path.read_text())
