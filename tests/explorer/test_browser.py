"""The page in a real browser: what people do with it, what hostile texts do to it, and who cannot see it."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import tarfile
import threading
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from browsing import serving
from hostile_texts import hostile_texts
from internals import QUESTION as DEMO_QUESTION
from internals import PageDocuments, Views
from internals import site as demo_site
from langchain_core.documents import Document

from linkstore import Link, LinkStore, add_links
from linkstore.explorer import render
from linkstore.ingest import FolderSource, index
from linkstore.memory import ConversationMemory

DATA = os.environ.get("LINKSTORE_EVAL_DATA")
MADE = "main script, main iframe, main object, main img, main style"
SHOWS = "id => document.querySelector('.text')?.textContent.includes(id)"
KEPT = "Object.entries(sessionStorage).find(([name]) => name.startsWith('linkstore-places'))"
QUESTION = "How do I install the program?"


@pytest.fixture
def address(store):
    with serving(store) as address:
        yield address


def ask(tab, question: str) -> None:
    tab.fill("input[name=q]", question)
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".answer .result, .status:has-text('Nothing was found')", state="attached")


def test_the_start_has_the_map_and_questions_made_from_titles_that_are_answered(tab, address):
    page = tab(address)
    page.tab.wait_for_selector(".begin .graph-status:has-text('4 pages')")
    questions = page.tab.locator(".questions a").all_inner_texts()
    assert 2 <= len(questions) <= 3
    assert "What should I know about Questions?" in questions
    page.tab.click(".questions a:has-text('What should I know about Questions?')")
    page.tab.wait_for_selector(".result h2:has-text('Questions')")
    assert page.tab.input_value("input[name=q]") == "What should I know about Questions?"
    page.check()


def test_a_question_gives_pages_with_marked_passages_and_their_picture(tab, address, store):
    page = tab(address)
    ask(page.tab, QUESTION)
    shown = page.tab.eval_on_selector_all("article.hit", "hits => hits.map(hit => hit.dataset.id)")
    hits = store.search(QUESTION, k=10)
    assert set(shown) == {hit.document.id for hit in hits}
    assert page.tab.locator(".result[data-page$='/guide'] mark").all_inner_texts() == ["install", "program"]
    link = page.tab.get_attribute(".result .source a", "href")
    assert link.startswith("https://site.example/")
    assert "#:~:text=" in link
    page.tab.wait_for_selector(".diagram .node")
    nodes = page.tab.eval_on_selector_all(
        ".diagram .node", "nodes => nodes.map(node => node.ariaLabel.split(',')[0])"
    )
    assert set(nodes) == {"Guide", "Installing", "Questions", "History"} & {
        hit.document.metadata["title"] for hit in hits
    }
    by_links = sum(hit.depth > 0 for hit in hits)
    summary = page.tab.inner_text(".summary")
    assert (f"{by_links} of {len(hits)} were found only by links" in summary) == bool(by_links)
    page.check()


def test_the_pointer_joins_the_list_and_the_picture(tab, address):
    page = tab(address)
    ask(page.tab, QUESTION)
    page.tab.hover(".result[data-page$='/faq'] h2")
    page.tab.wait_for_selector(".diagram.lighting .node.lit[aria-label^='Questions']")
    page.tab.hover(".diagram .node[aria-label^='Guide'] circle")
    page.tab.wait_for_selector(".result.lit[data-page$='/guide']")
    assert page.tab.locator(".result.lit").count() == 1
    page.tab.focus(".diagram .node[tabindex='0']")
    page.tab.keyboard.press("ArrowRight")
    focused = page.tab.evaluate("document.activeElement.dataset.id")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".reader h1")
    assert focused.rpartition("/")[2] in page.tab.url
    page.check()


def test_a_path_is_told_in_titles_and_link_texts_and_no_id_is_seen(tab, tmp_path):
    with LinkStore.open(tmp_path / "kb") as store:
        for id, title, text, target in (
            ("x1", "Tower", "A tower of steel near the sea.", "x2"),
            ("x2", "Quarter", "Bars fill up before a concert.", ""),
        ):
            one = Document(id=id, page_content=text, metadata={"title": title})
            add_links(one, Link.incoming(kind="hyperlink", tag=id))
            if target:
                add_links(one, Link.outgoing(kind="hyperlink", tag=target, label="streets around it"))
            store.add_documents([one])
        with serving(store) as address:
            page = tab(address)
            page.tab.evaluate(
                "location.hash = '#/ask?' + new URLSearchParams({q: 'steel tower',"
                " s: JSON.stringify({strategy: 'all-paths', depth: 1})})"
            )
            page.tab.wait_for_selector(".way")
            assert page.tab.inner_text(".way").endswith("Tower → streets around it → Quarter")
            assert page.tab.locator(".grade").all_inner_texts() == ["strong", "by links"]
            assert not {"x1", "x2"} & set(re.findall(r"\w+", page.tab.inner_text("main")))
            page.check()


def test_a_question_about_something_else_is_told_apart_from_an_answer(tab, address):
    page = tab(address)
    ask(page.tab, "How is carbonara cooked with pancetta and pecorino?")
    page.tab.wait_for_selector("h2:has-text('Nothing here seems to be about this')")
    assert "carbonara" in page.tab.inner_text(".nothing p")
    assert not page.tab.locator(".result").first.is_visible()
    page.tab.click("summary:has-text('nearest all the same')")
    assert page.tab.locator(".result").first.is_visible()
    assert set(page.tab.locator(".grade").all_inner_texts()) == {"weak"}
    page.check()


def test_the_options_are_behind_one_button_and_say_what_is_wrong_with_them(tab, address):
    page = tab(address)
    assert not page.tab.locator(".options").is_visible()
    page.tab.click("button:has-text('Options')")
    page.tab.fill("input[name=filter0]", "{lang")
    page.tab.fill("input[name=q]", QUESTION)
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".options .error:has-text('is not JSON')")
    page.tab.fill("input[name=filter0]", '{"title": "Guide"}')
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".result")
    assert page.tab.locator(".result").count() == 1
    assert page.tab.locator("button.changed:has-text('Options')").is_visible()
    page.tab.click("button:has-text('Options')")
    page.tab.keyboard.press("Escape")
    assert not page.tab.locator(".options").is_visible()
    page.check()


@pytest.fixture
def notes(tmp_path):
    """A store of twelve pages of two types, in two folders, with many tags, one of which is hostile."""
    with LinkStore.open(tmp_path / "notes") as store:
        for number in range(12):
            tags = [f"tag {number}", ["home", "<img src=x onerror=taken=1>"][number % 2]]
            metadata = {
                "title": f"Note {number}",
                "page": f"{'ab'[number % 3 == 0]}/{number}.md",
                "tags": tags,
            }
            metadata |= {"type": ["guide", "note"][number > 3], "day": f"2024-05-{number + 10}"}
            store.add_texts([f"A note on harbours, number {number}."], [metadata], ids=[str(number)])
        yield store


@pytest.mark.parametrize("width", [390, 1280])
def test_an_answer_is_narrowed_by_what_its_pages_have_with_the_keyboard_alone(tab, notes, width):
    with serving(notes) as address:
        page = tab(address, viewport={"width": width, "height": 800})
        ask(page.tab, "A note on harbours")
        page.tab.wait_for_selector(".facets select")
        menus = page.tab.eval_on_selector_all(".facets select", "menus => menus.map(menu => menu.ariaLabel)")
        assert menus == ["folder", "tags", "type"]
        options = page.tab.locator(".facets [name=type] option").all_inner_texts()
        assert options == ["type: any", "note (8)", "guide (4)"]
        page.tab.focus(".facets [name=type]")
        page.tab.keyboard.press("End")
        page.tab.wait_for_selector(".facets .chosen")
        assert page.tab.locator(".result").count() == 4
        assert page.tab.evaluate("document.activeElement.value") == '"guide"'
        options = page.tab.locator(".facets [name=type] option").all_inner_texts()
        assert options == ["type: any", "note (8)", "type: guide (4)"]
        page.tab.focus(".facets [name=page]")
        page.tab.keyboard.press("End")
        page.tab.wait_for_selector(".facets [name=page].chosen")
        kept = {number for number in range(4) if number % 3 == 0}
        shown = page.tab.eval_on_selector_all(
            "article.hit", "hits => hits.map(hit => Number(hit.dataset.id))"
        )
        assert set(shown) == kept
        page.tab.reload()
        page.tab.wait_for_selector(".facets .chosen ~ .chosen")
        assert page.tab.locator(".result").count() == len(kept)
        page.tab.select_option(".facets [name=type]", "")
        page.tab.wait_for_selector(".facets [name=type]:not(.chosen)")
        page.tab.select_option(".facets [name=page]", "")
        page.tab.wait_for_function("!document.querySelector('.facets .chosen')")
        assert "s=" not in page.tab.url
        page.check()
        page = tab(address, viewport={"width": width, "height": 800}, bypass_csp=True)
        ask(page.tab, "A note on harbours")
        page.tab.select_option(".facets [name=type]", "note (8)")
        page.tab.wait_for_selector(".facets .chosen")
        found = Axe().run(page.tab).response["violations"]
        assert [one for one in found if one["impact"] in ("serious", "critical")] == []


def test_a_condition_that_nothing_passes_can_be_taken_back(tab, notes):
    with serving(notes) as address:
        page = tab(address)
        ask(page.tab, "A note on harbours")
        page.tab.click("button:has-text('Options')")
        page.tab.fill("input[name=filter0]", '{"type": {"$in": ["tale"]}, "$not": {"day": "2024-05-10"}}')
        page.tab.keyboard.press("Enter")
        page.tab.wait_for_selector(".status:has-text('no document passes the filter')")
        assert page.tab.input_value(".facets .chosen") == '{"$in":["tale"]}'
        page.tab.select_option(".facets .chosen", "")
        page.tab.wait_for_selector(".result")
        page.tab.click("button:has-text('Options')")
        assert page.tab.input_value("input[name=filter0]") == '{"$not":{"day":"2024-05-10"}}'
        page.check()


def test_a_source_opens_at_its_passage(tab, tmp_path):
    """On a page of a web server, in a tab of its own, far below the top, and in no other paragraph."""
    words = "Why - of all things, really - does the installer ask, twice, for 100% of it?"
    blocks = ["Filler of a line. " * 9] * 80
    html = "".join(f"<p>{one}</p>" for one in [*blocks, "The heading", words, *blocks])
    (tmp_path / "page.html").write_text(f"<meta charset=utf-8>{html}")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web,
        LinkStore.open(tmp_path / "kb") as store,
        serving(store) as address,
    ):
        threading.Thread(target=web.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{web.server_port}/page.html"
        text = f"The heading\n{words}"
        store.add_documents([Document(id="a", page_content=text, metadata={"url": url, "title": "A"})])
        page = tab(address)
        ask(page.tab, "Why does the installer ask twice?")
        with page.tab.context.expect_page() as opened:
            page.tab.click(".result .source a")
        opened.value.wait_for_function("scrollY > 500")
        web.shutdown()


def test_two_settings_stand_side_by_side_with_what_moved(tab, address):
    page = tab(address)
    ask(page.tab, QUESTION)
    page.tab.click("button:has-text('Options')")
    page.tab.check("input[name=compare]")
    page.tab.click("button[type=submit]")
    page.tab.wait_for_selector(".beside section:nth-child(2) article.hit")
    assert page.tab.locator(".beside > section").count() == 2
    assert page.tab.locator(".move").count() > 0
    page.check()


def test_an_address_is_a_permalink(tab, address):
    page = tab(address)
    ask(page.tab, QUESTION)
    link = page.tab.url
    assert "token" not in link
    page.tab.goto("about:blank")
    page.tab.goto(link)
    page.tab.wait_for_selector("article.hit")
    assert page.tab.input_value("input[name=q]") == QUESTION
    page.check()


def test_a_document_that_is_missing_is_explained(tab, address):
    page = tab(address)
    page.tab.click("button:has-text('Options')")
    page.tab.select_option("select[name=strategy0]", "words")
    ask(page.tab, "machine")
    page.tab.click(".absence summary")
    page.tab.fill(".absence input", "history")
    page.tab.click(".absence .found button")
    page.tab.wait_for_selector(".absence li:has-text('no hit is within 3 links')")
    page.check()


def test_a_document_shows_text_links_and_what_is_around_it_and_leads_on(tab, address):
    page = tab(address)
    ask(page.tab, QUESTION)
    page.tab.click(".result[data-page$='/guide'] h2 a")
    page.tab.wait_for_selector(".text:has-text('How to install')")
    assert page.tab.locator(".text mark").all_inner_texts() == ["install", "program"]
    page.tab.wait_for_selector(".around .node")
    nodes = page.tab.eval_on_selector_all(".around .node", "nodes => nodes.map(node => node.ariaLabel)")
    assert nodes == ["Guide, this page", "Questions, 2 links", "Installing, 1 link"]
    page.tab.hover(".links a:has-text('Questions')")
    page.tab.wait_for_selector("[role=tooltip]:has-text('ask for a password')")
    page.tab.click(".links a:has-text('Questions')")
    page.tab.wait_for_selector(".text:has-text('password')")
    assert page.tab.locator("[role=tooltip]").count() == 0
    page.tab.go_back()
    page.tab.wait_for_selector(".text:has-text('How to install')")
    page.check()


def test_a_page_is_shown_whole_with_its_sections_and_the_passage_in_view(tab, tmp_path):
    """Lists, tables and code have their form, and the texts of links lead where they lead."""
    text = "It has:\n- a list\n- of two\n\nname | size\nhub | large\n\ndef find(*hubs):\n    return hubs"
    chunks = [
        Document(
            id=f"a#{number}",
            page_content=f"A > Part {number}\n\n{'Filler. ' * 400 if number < 5 else text}",
            metadata={"title": "A", "page": "a", "headings": ["A", f"Part {number}"]},
        )
        for number in range(6)
    ]
    add_links(chunks[5], Link.outgoing(kind="hyperlink", tag="b", label="of two"))
    other = Document(id="b", page_content="Beyond.", metadata={"title": "B", "page": "b"})
    add_links(other, Link.incoming(kind="hyperlink", tag="b"))
    with LinkStore.open(tmp_path / "kb") as store, serving(store) as address:
        store.pages.put("s", [PageDocuments("a", "1", tuple(chunks)), PageDocuments("b", "1", (other,))])
        page = tab(address)
        page.tab.goto(f"{address.partition('#')[0]}#/document?id=a%235")
        page.tab.wait_for_selector(".passage pre")
        assert page.tab.evaluate("scrollY") > 1000
        assert page.tab.inner_text(".passage pre") == "def find(*hubs):\n    return hubs"
        assert page.tab.locator(".passage td").all_inner_texts() == ["hub", "large"]
        assert page.tab.locator(".passage li").all_inner_texts() == ["a list", "of two"]
        page.tab.click(".contents a:has-text('Part 0')")
        page.tab.wait_for_function("() => scrollY < 300")
        assert page.tab.locator(".contents a").count() == 6
        page.tab.click(".passage li a:has-text('of two')")
        page.tab.wait_for_selector(".text:has-text('Beyond')")
        page.check()


def test_markdown_and_html_are_reduced_to_what_is_allowed(tab, tmp_path):
    """Texts that a program added: their form is kept, and nothing in them acts."""
    trap, far = "javascript:window.taken=1", "https://elsewhere.example/x"
    script = "<script>window.taken=1</script>"
    texts = {
        "md": f"# Head\n\nA **bold** [link]({far}), a [trap]({trap}) and `<img src=x onerror=window.taken=1>`"
        f".\n\n1. one\n2. two\n\n```\n{script}\n```",
        "html": "<article onclick='window.taken=1'><h1>Head</h1><p style='color:red'>A <b>bold</b>"
        f" <a href='{far}' onclick='window.taken=1'>link</a>, a <a href='{trap}'>trap</a></p>"
        f"<img src={far} onerror=window.taken=1>{script}<iframe src={far}></iframe>"
        "<svg onload=window.taken=1><style>*{display:none}</style></svg><ol><li>one<li>two</ol></article>",
    }
    for number, text in enumerate(hostile_texts()[::25]):
        texts[f"p{number}"] = f"<p>{text}</p>{text}"
        texts[f"m{number}"] = (
            f"# Head\n\n{text} **bold**\n\n> {text}\n\n- {text}\n\n| a | b |\n|--|--|\n| {text} | c |"
        )
    with LinkStore.open(tmp_path / "kb") as store, serving(store) as address:
        store.add_documents(
            [Document(id=id, page_content=text.replace("\x00", "")) for id, text in texts.items()]
        )
        page = tab(address)
        for id in texts:
            page.tab.evaluate("id => location.hash = `#/document?id=${id}`", id)
            page.tab.wait_for_function(
                "id => document.querySelector('.facts-table td')?.textContent === id", arg=id
            )
            assert page.tab.locator(MADE).count() == 0, id
            names = page.tab.eval_on_selector_all(
                ".text *",
                "nodes => nodes.flatMap(node => node.getAttributeNames())",
            )
            assert set(names) <= {
                "class",
                "dir",
                "tabindex",
                "role",
                "aria-label",
                "scope",
                "href",
                "target",
                "rel",
            }
            if id in ("md", "html"):
                assert page.tab.locator(".text strong, .text b").all_inner_texts() == ["bold"]
                assert page.tab.locator(".text h3").all_inner_texts() == ["Head"]
                assert page.tab.locator(".text li").all_inner_texts() == ["one", "two"]
                assert page.tab.locator(".text a").count() == 1
        page.tab.wait_for_timeout(300)
        page.check()


def test_the_map_shows_pages_orphans_groups_and_dates(tab, address):
    page = tab(address)
    page.tab.click("nav a:has-text('Map')")
    page.tab.wait_for_selector(".atlas .graph-status:has-text('4 pages')")
    assert "The store has 4 pages" in page.tab.inner_text(".report").replace("documents", "pages")
    page.tab.click(".orphans summary")
    assert page.tab.locator(".orphans a").all_inner_texts() == ["History"]
    page.tab.click(".groups button >> nth=0")
    page.tab.wait_for_selector(".graph-status:has-text('3 of 4 pages')")
    page.tab.click(".groups button >> nth=0")
    page.tab.fill("input[aria-label='Search the drawn pages']", "guide")
    page.tab.wait_for_selector(".graph-status:has-text('1 of 4 pages')")
    page.tab.hover(".centres li >> nth=0")
    page.tab.wait_for_selector(".graph-status:has-text('links')")
    page.tab.click(".checkup summary")
    page.tab.click("button:has-text('Examine the store')")
    page.tab.wait_for_selector(".checkup :text-matches('attention|drift|coverage|dangling|names')")
    page.check()


def test_arrow_keys_walk_along_links_and_enter_opens(tab, address):
    page = tab(address)
    page.tab.click("nav a:has-text('Map')")
    page.tab.wait_for_selector(".atlas .graph-canvas canvas")
    page.tab.focus(".graph-canvas")
    page.tab.keyboard.press("ArrowRight")
    first = page.tab.inner_text(".graph-status")
    assert first == "Questions: 3 links"
    walked = set()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.tab.keyboard.press(key)
        walked.add(page.tab.inner_text(".graph-status"))
    assert len(walked | {first}) > 1
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_function("location.hash.includes('document')")
    page.check()


def test_without_webgl_the_graph_is_a_list(browser, address):
    context = browser.new_context()
    context.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    tab = context.new_page()
    tab.goto(address)
    tab.wait_for_selector(".graph-status:has-text('no WebGL')")
    assert tab.locator(".graph-list button:has-text('Guide')").is_visible()
    ask(tab, QUESTION)
    tab.wait_for_selector(".diagram .node[aria-label^='Guide']")
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing_serious(tab, address, scheme, width):
    page = tab(address, color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    query = urlencode({"q": QUESTION})
    views = {
        "#/ask": ".graph-status:has-text('pages')",
        f"#/ask?{query}": ".diagram .node",
        "#/ask?q=carbonara+pancetta+pecorino": ".nothing",
        "#/corpus": ".graph-status:has-text('pages')",
        f"#/document?id=guide&{query}": ".diagram .node",
    }
    for view, awaited in views.items():
        page.tab.goto(address.partition("#")[0] + view)
        page.tab.wait_for_selector(awaited)
        found = Axe().run(page.tab).response["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        told = [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in serious]
        assert told == [], (view, scheme, width)
        wide = page.tab.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, f"{view} is wider than {width}"


def test_without_the_token_nothing_is_shown_and_with_it_all(tab, address):
    page = tab(address.partition("#")[0])
    page.tab.wait_for_selector("input[type=password]")
    assert "document" not in page.tab.inner_text("body")
    page.tab.fill("input[type=password]", address.partition("=")[2])
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector("input[name=q]")


def test_on_a_phone_the_picture_is_above_the_fold(tab, address):
    page = tab(address, viewport={"width": 390, "height": 844}, has_touch=True)
    for view, picture in (
        ("#/ask", ".graph-canvas"),
        (f"#/ask?{urlencode({'q': QUESTION})}", ".diagram"),
        ("#/document?id=guide", ".diagram"),
        ("#/corpus", ".graph-canvas"),
    ):
        page.tab.goto(address.partition("#")[0] + view)
        page.tab.wait_for_selector(picture)
        box = page.tab.locator(picture).bounding_box()
        assert 0 <= box["y"] <= 844 - min(box["height"], 300), (view, box)
    page.check()


def test_a_server_that_is_gone_is_said_to_be(tab, store):
    with serving(store) as address:
        page = tab(address)
        ask(page.tab, QUESTION)
    page.tab.fill("input[name=q]", "something else")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".error:has-text('does not answer')")


def test_hostile_texts_stay_texts_in_every_view(tab, hostile):
    with LinkStore.open(hostile) as store, serving(store) as address:
        page = tab(address)
        ask(page.tab, "word")
        base = address.partition("#")[0]
        for text in hostile_texts()[::50]:
            id = text.replace("\x00", "")
            page.tab.evaluate("id => location.hash = `#/document?id=${encodeURIComponent(id)}`", id)
            page.tab.wait_for_function(
                "id => document.querySelector('.text')?.textContent.includes(id)", arg=id
            )
            assert page.tab.locator(MADE).count() == 0
        page.tab.goto(f"{base}#/corpus")
        page.tab.wait_for_selector(".graph-status:has-text('500 pages')")
        page.tab.click("summary:has-text('As a list')")
        assert page.tab.locator(MADE).count() == 0
        assert page.tab.locator("main a[href^='javascript:'], main a[href^='data:']").count() == 0
        page.tab.wait_for_timeout(300)
        page.check()


def test_files_show_hits_and_stores_and_ask_nobody(tab, store, hostile, tmp_path):
    made = {"hits": render(store.search(QUESTION), QUESTION), "store": render(store)}
    with LinkStore.open(hostile) as other:
        made["hostile"] = render(other, title=hostile_texts()[1])
    for name, text in made.items():
        file = tmp_path / f"{name}.html"
        file.write_text(text, encoding="utf-8")
        page = tab(file.as_uri())
        page.tab.wait_for_selector(".graph-status, .diagram .node")
        page.check()
    assert page.tab.title() == hostile_texts()[1]


def test_motion_that_is_not_wanted_does_not_come(tab, address):
    """All steps of the layout are done before the first picture, and none afterwards."""
    page = tab(address, reduced_motion="reduce")
    page.tab.click("nav a:has-text('Map')")
    page.tab.wait_for_selector(".atlas .graph-canvas canvas")
    page.tab.wait_for_timeout(500)
    kept = page.tab.evaluate(
        "Object.entries(sessionStorage).find(([name]) => name.startsWith('linkstore-places'))"
    )
    assert len(json.loads(kept[1])) == 4


def test_conversations_are_shown_and_what_would_be_recalled(tab, store, tmp_path):
    with LinkStore.open(tmp_path / "chat") as chat:
        ConversationMemory(chat).add("first", "My dog is called Rex.", "A fine name.")
        with serving(store, memory=chat) as address:
            page = tab(address)
            page.tab.click("nav a:has-text('Memory')")
            page.tab.wait_for_selector(".turns .query:has-text('Rex')")
            page.tab.fill(".recall input", "What is my dog called?")
            page.tab.keyboard.press("Enter")
            page.tab.wait_for_selector("summary:has-text('Prompt')")
            page.check()


def test_a_view_that_was_left_does_not_come_back_when_its_answer_does(tab, address, store, monkeypatch):
    show, wait = Views.show, threading.Event()

    def show_slowly(self, name, given):
        if name == "corpus":
            wait.wait(20)
        return show(self, name, given)

    monkeypatch.setattr(Views, "show", show_slowly)
    page = tab(address)
    page.tab.click("nav a:has-text('Map')")
    page.tab.wait_for_selector(".status:has-text('Reading')")
    page.tab.click("nav a:has-text('Ask')")
    page.tab.wait_for_selector("input[name=q]")
    with page.tab.expect_response("**/api/corpus"):
        wait.set()
    page.tab.wait_for_timeout(300)
    assert page.tab.locator("input[name=q]").is_visible()
    page.check()


def test_a_store_that_changes_while_the_page_is_open_is_shown_as_it_is(tab, tmp_path):
    with LinkStore.open(tmp_path / "kb") as store, serving(store) as address:
        page = tab(address)
        page.tab.click("nav a:has-text('Map')")
        page.tab.wait_for_selector(".status:has-text('The store is empty')")
        store.add_texts(["A first text."], ids=["first"])
        page.tab.click("nav a:has-text('Ask')")
        page.tab.click("nav a:has-text('Map')")
        page.tab.wait_for_selector(".graph-status:has-text('1 page')")
        page.tab.wait_for_selector(".brand[title='1 document']")
        store.delete(["first"])
        page.tab.goto(f"{address.partition('#')[0]}#/document?id=first")
        page.tab.wait_for_selector(".error:has-text('does not exist')")


def test_a_store_that_is_gone_is_said_to_be(tab, tmp_path):
    with LinkStore.open(tmp_path / "kb") as store, serving(store) as address:
        store.add_texts(["A first text."], ids=["first"])
        page = tab(address)
        ask(page.tab, "What is first?")
        shutil.rmtree(tmp_path / "kb")
        page.tab.fill("input[name=q]", "And what is second?")
        page.tab.keyboard.press("Enter")
        page.tab.wait_for_selector(".error:has-text('was deleted or moved')")


def test_a_suggested_link_is_added_only_where_writing_is_allowed(tab, tmp_path):
    pages = {"a": "Alpha Centauri is a star.", "b": "The star Alpha Centauri is near.", "c": "Nothing."}
    documents = [
        Document(id=id, page_content=text, metadata={"title": title, "page": id, "url": id})
        for (id, text), title in zip(pages.items(), ("Alpha Centauri", "Near", "Else"), strict=True)
    ]
    with LinkStore.open(tmp_path / "kb") as store:
        store.pages.put("s", [PageDocuments(one.id, "1", (one,)) for one in documents])
        for write in (False, True):
            with serving(store, write=write) as address:
                page = tab(address)
                page.tab.click("nav a:has-text('Map')")
                page.tab.click(".suggestions summary")
                page.tab.click("button:has-text('Suggest links')")
                page.tab.wait_for_selector(".suggestions ol li")
                assert page.tab.locator("button:has-text('Add')").count() == int(write)
                page.tab.goto(f"{address.partition('#')[0]}#/document?id=b")
                page.tab.wait_for_selector(".reader")
                page.tab.click(".suggestions summary")
                page.tab.click("button:has-text('Suggest links')")
                page.tab.wait_for_selector(".suggestions li a:has-text('a')")
                if write:
                    page.tab.click("button:has-text('Add')")
                    page.tab.wait_for_selector(".suggestions li:has-text('added')")
        assert [one.ids for one in store.links.neighbours("b").outgoing if one.ids] == [("a",)]


def test_a_slider_and_a_search_say_and_list_what_they_leave(tab, tmp_path):
    with LinkStore.open(tmp_path / "kb") as store, serving(store) as address:
        for year in (2021, 2022, 2023):
            one = Document(id=str(year), page_content=f"Of {year}.", metadata={"date": f"{year}-05-01"})
            store.add_documents([one])
        page = tab(address)
        page.tab.click("nav a:has-text('Map')")
        page.tab.wait_for_selector(".graph-status:has-text('3 pages')")
        page.tab.click("summary:has-text('As a list')")
        page.tab.focus("input[type=range]")
        page.tab.keyboard.press("ArrowLeft")
        page.tab.wait_for_selector(".graph-status:has-text('2 of 3 pages')")
        page.tab.fill("input[aria-label='Search the drawn pages']", "2022")
        page.tab.wait_for_selector(".graph-status:has-text('1 of 3 pages')")
        assert page.tab.locator(".nodes > li").all_inner_texts() == ["Of 2022. (0 links)"]
        page.check()


@pytest.mark.parametrize("width", [360, 1280])
def test_strange_stores_are_shown_without_a_fault(tab, tmp_path, width):
    """No document, one without title, texts from right to left, and one very long word."""
    made = [
        [],
        [Document(id="one", page_content="Only this.")],
        [
            Document(
                id=f"صفحة/{at}",
                page_content=f"{text}. " * 9,
                metadata={"title": text, "date": f"20{at}1-02-03"},
            )
            for at, text in enumerate(["القدس مدينة", "👩‍👩‍👧‍👦 🏳️‍🌈", "x" * 300])
        ],
    ]
    for number, documents in enumerate(made):
        with LinkStore.open(tmp_path / str(number)) as store, serving(store) as address:
            for one in documents:
                add_links(one, Link.bidir(kind="رابط", tag="t"))
            store.add_documents(documents)
            page = tab(address, viewport={"width": width, "height": 800})
            ask(page.tab, "Only this")
            ids = [one.id for one in documents]
            for view in ["#/corpus", *(f"#/document?{urlencode({'id': id})}" for id in ids)]:
                page.tab.evaluate("view => location.hash = view", view)
                page.tab.wait_for_selector(".atlas, .reader" if ids else ".status:has-text('empty')")
                wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                assert page.tab.evaluate(wide) <= 0, view
            page.check()


@pytest.mark.parametrize("corpus", ["demo", pytest.param("peps", marks=pytest.mark.long)])
def test_a_person_goes_through_all_views(tab, tmp_path, corpus):
    """On the site of the demo, and on 18,000 chunks of the PEPs."""
    if corpus == "peps" and not DATA:
        pytest.skip("needs LINKSTORE_EVAL_DATA, the folder of the sets")
    question = DEMO_QUESTION if corpus == "demo" else "How does a script declare its dependencies?"
    with LinkStore.open(tmp_path / "kb") as store:
        if corpus == "demo":
            with demo_site() as folder:
                index(store, FolderSource(folder))
        else:
            with tarfile.open(Path(DATA) / "docs_site" / "peps_html.tar.xz") as packed:
                packed.extractall(tmp_path, filter="data")
            index(store, FolderSource(tmp_path / "html"))
        with serving(store) as address:
            page = tab(address)
            ask(page.tab, question)
            first = page.tab.locator(".result h2 a").first
            named = first.inner_text()
            first.click()
            page.tab.wait_for_selector(".text")
            assert named == page.tab.inner_text(".reader h1")
            page.tab.locator(".links li a").first.click()
            left = "named => document.querySelector('.reader h1')?.textContent !== named"
            page.tab.wait_for_function(left, arg=named)
            page.tab.click("nav a:has-text('Map')")
            page.tab.wait_for_selector(f".graph-status:has-text('{store.survey().pages} pages')")
            page.tab.locator(".groups button").first.click()
            page.tab.fill("input[aria-label='Search the drawn pages']", "a")
            page.tab.wait_for_selector(".graph-status:has-text(' of ')")
            page.tab.go_back()
            page.tab.wait_for_selector(".text")
            page.check()


def test_the_start_draws_no_map_once_it_is_left(tab, address):
    """Of two views that wait for the graph of the store, only the one that is shown draws it."""
    page = tab(address).tab
    page.wait_for_selector(".graph-canvas canvas")
    page.evaluate(
        """() => {
            const getContext = HTMLCanvasElement.prototype.getContext;
            window.contexts = 0;
            HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
                window.contexts += kind.startsWith("webgl");
                return getContext.call(this, kind, ...rest);
            };
        }"""
    )
    page.evaluate("location.hash = '#/corpus'")
    page.wait_for_selector(".atlas .graph-canvas canvas")
    of_a_map = page.evaluate("contexts")
    held = []
    page.route("**/api/corpus", lambda route: held.append(route))
    for view in ("#/ask", "#/corpus"):
        with page.expect_request("**/api/corpus"):
            page.evaluate("view => location.hash = view", view)
    for route in held:
        route.continue_()
    page.wait_for_selector(".atlas .graph-canvas canvas")
    assert page.evaluate("contexts") == 2 * of_a_map
