"""What people type in a folder, with the store of that folder or without: the first line that they see."""

# ruff: noqa: E501 (what is printed stays on its line)
from __future__ import annotations

import re

import pytest
from documented import linkstore

USAGE = re.compile(r"Usage: .*\n(Try .*\n)?")
WITHOUT_A_STORE = {
    "linkstore": "Usage: linkstore [OPTIONS] COMMAND [ARGS]...",
    "version": "linkstore ",
    "help index": "Usage: linkstore index [OPTIONS] {SOURCE}",
    "what is a hub": "linkstore: there is no command 'what'; to ask a store: linkstore query what is a hub",
    "What is a hub?": "linkstore: there is no command 'What'; to ask a store: linkstore query What is a 'hub?'",
    "query hub": "linkstore: there is no store here: neither this folder nor one above it has a .linkstore; make one with: linkstore open SOURCE",
    "query hub --store nowhere": "linkstore: there is no store at nowhere; make one with: linkstore index SOURCE --store nowhere",
    "mcp --store nowhere": "linkstore: there is no store at nowhere; make one with: linkstore index SOURCE --store nowhere",
    "search hub": "linkstore: there is no command 'search'; did you mean: linkstore query hub",
    "quer hub": "linkstore: there is no command 'quer'; did you mean: linkstore query hub",
    "idnex docs": "linkstore: there is no command 'idnex'; did you mean: linkstore index docs",
    "init docs": "linkstore: there is no command 'init'; did you mean: linkstore index docs",
    "chat": "linkstore: there is no command 'chat'; did you mean: linkstore ask",
    "ls": "linkstore: there is no command 'ls'; did you mean: linkstore doctor",
    "update": "linkstore: there is no command 'update'; did you mean: linkstore index",
    "install claude": "linkstore: there is no command 'install'; did you mean: linkstore mcp --install claude",
    "nowhere": "linkstore: there is no command and no file or folder 'nowhere'; linkstore --help lists the commands",
    "./nowhere": "linkstore: ./nowhere does not exist; give a URL, or a folder or file of pages",
    "nowhere.md": "linkstore: nowhere.md does not exist; give a URL, or a folder or file of pages",
    "index": "Error: Missing argument 'SOURCE'.",
    "index nowhere": "linkstore: nowhere does not exist; give a URL, or a folder or file of pages",
    "index empty": "linkstore: nothing was indexed from ",
    "index pic.png": "linkstore: pic.png: the kind of source is not recognized; give one of: ",
    "index table.csv": "linkstore: table.csv: data are not read; write each row as a line of JSON with id and text",
    "index docs/a.md#hubs": "linkstore: docs/a.md#hubs does not exist; did you mean: docs/a.md",
    "index my notes.md": "Error: Got unexpected extra argument(s) (notes.md); quote a name with spaces",
    "index docs notes.md": "Error: Got unexpected extra argument(s) (notes.md); quote a name with spaces",
    "index http://": "linkstore: 'http://' is not a URL, such as https://example.org/guide/",
    "index htps://example.org": "linkstore: htps://example.org does not exist; did you mean: https://example.org",
    "index www.example.org": "linkstore: www.example.org does not exist; for the website, give https://www.example.org",
    "index file:///srv/docs": "linkstore: file:///srv/docs does not exist; did you mean: /srv/docs",
    "index git@github.com:o/r.git": "linkstore: git@github.com:o/r.git does not exist; clone the repository",
    "index http://localhost:1/": "linkstore: localhost is 127.0.0.1, which is not requested: it is loopback; --allow-private",
    "index docs --stroe kb": "Error: No such option: --stroe (Possible options: --rate, --source, --store)",
    "index docs --embedding openai": "linkstore: unknown embedding 'openai'; use wordllama, minilm, multilingual, bge-small or openai:MODEL",
    "demo sqlit": "Error: Invalid value for 'SITE': 'sqlit' is not one of 'seattle', 'sqlite'.",
    "embeddings fetch nosuch": "linkstore: unknown embedding 'nosuch'; there are: wordllama, multilingual, minilm, bge-small, openai:MODEL",
    "eval": "linkstore: give --questions; without them, --profile and --calibrate look at a store",
}  # fmt: skip
WITH_A_STORE = {
    "query hub": "1. Hubs",
    "query what is a hub": "1. Hubs",
    "query qwertz asdf": "probably nothing here is about this: no document has the words qwertz, asdf",
    "query hub --k 3": "Error: No such option: --k",
    "query hub -k 0": "Error: Invalid value for '-k': Input should be greater than or equal to 1",
    "query hub --strategy pagerankk": "Error: Invalid value for '--strategy': 'pagerankk' is not one of",
    "query hub --filter lang=en": 'linkstore: --filter is not valid JSON, such as \'{"lang": "en"}\'',
    "query hub --kinds hyperlnk": "linkstore: no document has the link kind 'hyperlnk'; did you mean 'hyperlink'?",
    "links nothere": "linkstore: no document has the id or URL 'nothere'; find what there is with: linkstore query TEXT",
    "delete nothere.md": "linkstore: no document has the id or URL 'nothere.md'; find what there is with: linkstore query TEXT",
    "remove docs/a.md": "linkstore: there is no command 'remove'; did you mean: linkstore delete docs/a.md",
    "doctor docs": "Error: Got unexpected extra argument(s) (docs); quote a name with spaces, and name a store by --store",
    "serve --prot 1": "Error: No such option: --prot (Possible options: --host, --port, --write)",
    "serve --port 99999": "Error: Invalid value for '--port': Input should be less than or equal to 65535",
    "ask hub": "an answer needs a chat model: give --model openai:gpt-4.1-mini and set OPENAI_API_KEY",
    "export --format pdf": "Error: Invalid value for '--format': 'pdf' is not one of 'jsonl'",
    "query -- --help": "weak match: ",
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of what a person may have, and the same with the store of its docs."""
    made = []
    for _ in range(2):
        folder = tmp_path_factory.mktemp("home")
        (folder / "docs").mkdir()
        (folder / "empty").mkdir()
        (folder / "docs" / "a.md").write_text("# Hubs\nA hub is not followed. See [links](b.md).\n")
        (folder / "docs" / "b.md").write_text("# Links\nLinks lead on. [Back](a.md)\n")
        for name, text in {
            "notes.md": "# Notes\n",
            "my notes.md": "# Mine\n",
            "table.csv": "a,b\n1,2\n",
        }.items():
            (folder / name).write_text(text)
        (folder / "pic.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        made.append(folder)
    assert linkstore("index", str(made[1] / "docs"), "--store", str(made[1] / ".linkstore"))[0] == 0
    return made


@pytest.mark.parametrize(
    ("typed", "indexed", "line"),
    [*((typed, False, line) for typed, line in WITHOUT_A_STORE.items()),
     *((typed, True, line) for typed, line in WITH_A_STORE.items())],
)  # fmt: skip
def test_the_first_line_says_what_was_found_or_what_to_do(folders, monkeypatch, typed, indexed, line):
    monkeypatch.delenv("LINKSTORE_STORE", raising=False)
    monkeypatch.chdir(folders[indexed])
    words = [] if typed == "linkstore" else typed.split(" ")
    code, out, err = linkstore(*words)
    said = [USAGE.sub("", text) if "Error: " in text else text for text in (err, out)]
    assert any(text.lstrip().startswith(line) for text in said), (code, out, err)
    assert "Traceback" not in out + err
    assert code != 0 or not line.startswith(("linkstore: ", "Error: "))
