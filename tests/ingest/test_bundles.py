"""Bundles of the Open Knowledge Format: recognition, fields, provenance, and pages that were superseded."""

from __future__ import annotations

import datetime as dt

import pytest
from bundle_cases import BUNDLE, NEW, OLD, write
from internals import get_links

from linkstore import LinkStore
from linkstore.ingest import FolderSource, VaultSource, index


@pytest.fixture
def store():
    with LinkStore() as opened:
        yield opened


def get(store, id):
    (document,) = store.get_by_ids([id])
    return document


def out(store, id, kind):
    return {link.tag: link for link in get_links(get(store, id)) if link.kind == kind and link.leads_out}


@pytest.mark.parametrize("kind", [FolderSource, VaultSource])
def test_fields_of_a_concept_become_metadata_and_links(store, tmp_path, kind):
    write(tmp_path, BUNDLE)
    index(store, kind(tmp_path))

    churn = get(store, "metrics/churn.md")
    assert (churn.metadata["title"], churn.metadata["type"]) == ("Churn", "Metric")
    assert (churn.metadata["okf_lifecycle"], churn.metadata["okf_trust"]) == ("stable", "human-reviewed")
    assert churn.page_content.startswith("Share of customers that leave.")
    sources = out(store, "metrics/churn.md", "sourced_from")
    assert sources.keys() == {"/policies/rules.md", "https://example.org/wiki/churn", "/metrics/gone.md"}
    assert sources["/policies/rules.md"].label == "The rules"
    assert sources["/policies/rules.md"].data == {"id": "rules", "author": "human:ann"}
    assert out(store, "metrics/churn.md", "executor").keys() == {"/policies/rules.md"}
    assert out(store, "metrics/churn.md", "attester") == {}
    assert out(store, "metrics/churn.md", "tag").keys() == {"growth", "people"}
    led = {link.kind for link in get_links(get(store, "policies/rules.md")) if link.direction == "in"}
    assert {"sourced_from", "executor"} <= led


@pytest.mark.parametrize("kind", [FolderSource, VaultSource])
def test_links_from_the_root_lead_into_a_bundle_that_lies_deeper(store, tmp_path, kind):
    log = {"log.md": "# Log\n\n* Added [churn](/metrics/churn.md).\n", "metrics/churn.md": ""}
    pages = {f"knowledge/sales/{name}": text for name, text in {**BUNDLE, **log}.items()}
    write(tmp_path, pages)
    index(store, kind(tmp_path))
    write(tmp_path, {**pages, "knowledge/sales/metrics/churn.md": NEW})
    index(store, kind(tmp_path))  # the page that the log names is there now

    lead = "/knowledge/sales"
    assert f"{lead}/policies/rules.md" in out(store, "knowledge/sales/metrics/churn.md", "hyperlink")
    assert f"{lead}/metrics/churn.md" in out(store, "knowledge/sales/log.md", "hyperlink")
    assert f"{lead}/policies/rules.md" in out(store, "knowledge/sales/metrics/churn.md", "sourced_from")


def test_a_deprecated_page_names_its_only_successor_in_text_metadata_and_links(store, tmp_path):
    write(tmp_path, BUNDLE)
    index(store, FolderSource(tmp_path))

    old = get(store, "metrics/churn-old.md")
    assert old.page_content.startswith("Deprecated, superseded by Churn.")
    assert old.metadata["okf_superseded_by"] == ["metrics/churn.md"]
    assert out(store, old.id, "superseded_by").keys() == {"/metrics/churn.md"}


def test_a_deprecated_page_that_links_to_two_of_its_type_has_no_successor(store, tmp_path):
    two = OLD.replace("Use [churn]", "Use [rate](rate.md) or [churn]")
    write(tmp_path, {**BUNDLE, "metrics/churn-old.md": two, "metrics/rate.md": NEW.replace("Churn", "Rate")})
    index(store, FolderSource(tmp_path))

    old = get(store, "metrics/churn-old.md")
    assert old.page_content.startswith("Deprecated.\n")
    assert "okf_superseded_by" not in old.metadata


@pytest.mark.parametrize(
    ("page", "fields"), [("old", "superseded_by: new.md"), ("new", "supersedes: [/old.md]")]
)
def test_either_page_may_name_the_succession(store, tmp_path, page, fields):
    text = "---\ntype: Note\ngenerated: {{by: a/1}}\n{}\n---\nSome text of the {} page.\n"
    pages = {f"{name}.md": text.format(fields if name == page else "x: 1", name) for name in ("old", "new")}
    write(tmp_path, pages)
    index(store, FolderSource(tmp_path))

    assert get(store, "old.md").metadata["okf_superseded_by"] == ["new.md"]
    assert "okf_superseded_by" not in get(store, "new.md").metadata


@pytest.mark.parametrize(("days", "lifecycle"), [(-1, "stale"), (0, "stale"), (2, "draft")])
def test_a_page_is_stale_from_its_day_on(store, tmp_path, days, lifecycle):
    day = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=days)
    write(tmp_path, {"a.md": f"---\ntype: Note\nstatus: draft\nstale_after: {day}\n---\nA text.\n"})
    index(store, FolderSource(tmp_path))

    document = get(store, "a.md")
    assert document.metadata["okf_lifecycle"] == lifecycle
    assert document.page_content.startswith(f"Stale since {day}: verify") == (lifecycle == "stale")


def test_a_page_that_becomes_deprecated_is_read_again_with_what_names_it(store, tmp_path):
    write(tmp_path, {**BUNDLE, "metrics/churn-old.md": OLD.replace("deprecated", "draft")})
    index(store, FolderSource(tmp_path))
    write(tmp_path, BUNDLE)

    written = index(store, FolderSource(tmp_path)).pages
    assert (written.updated, written.unchanged) == (2, 5)  # the new one is led to, now
    assert index(store, FolderSource(tmp_path)).pages.unchanged == 7


@pytest.mark.parametrize("fields", ["type: post\ndate: 2026-01-01", "status: deprecated", "type: [a]\nx: 1"])
def test_other_front_matter_is_no_bundle(store, tmp_path, fields):
    write(tmp_path, {"a.md": f"---\n{fields}\n---\n# A\n\nSee [b](b.md).\n", "b.md": "# B\n\nText.\n"})
    index(store, FolderSource(tmp_path))

    assert not [name for name in get(store, "a.md").metadata if name.startswith("okf_")]


def test_a_folder_that_names_the_version_is_a_bundle(store, tmp_path):
    write(tmp_path, {"index.md": '---\nokf_version: "0.2"\n---\n# All\n\n* [A](a.md)\n'})
    write(tmp_path, {"a.md": "---\ntype: Note\ntitle: First\n---\n"})
    index(store, FolderSource(tmp_path))

    document = get(store, "a.md")
    assert document.metadata["okf_lifecycle"] == "stable"
    assert document.metadata["title"] == "First"


TOPICS = ["margin", "revenue", "churn", "latency", "refund", "stock", "traffic", "payroll", "uptime", "tax"]
REGIONS = ["Spain", "Kenya", "Peru", "Japan", "Norway", "Chile", "India", "Ghana", "Malta", "Cuba"]


def test_no_old_page_ranks_above_its_successor(store, tmp_path):
    """Of 200 questions in the words of the old pages, half by links and half by similarity alone."""
    pairs = [(topic, region) for topic in TOPICS for region in REGIONS]
    for topic, region in pairs:
        name = f"{topic}-{region.lower()}"
        head = f"---\ntype: Metric\ntitle: The {topic} of {region}"
        old = f"{head} before 2026\nstatus: deprecated\n---\nHow the {topic} of {region} is computed each"
        new = f"{head}\n---\nSince the reform, {region} reports {topic} by quarter, after costs of transport."
        write(tmp_path, {f"old/{name}.md": f"{old} month. Now see [this](../new/{name}.md).\n"})
        write(tmp_path, {f"new/{name}.md": f"{new}\n"})
    write(tmp_path, {"index.md": '---\nokf_version: "0.2"\n---\n# All\n\nMetrics of ten countries.\n'})
    index(store, FolderSource(tmp_path))

    def rank(topic, region, search):
        question = f"How is the {topic} of {region} computed each month before 2026?"
        return [id for id in search(question) if id.endswith(f"/{topic}-{region.lower()}.md")]

    searches = [
        lambda question: [hit.document.id for hit in store.search(question)],
        lambda question: [document.id for document in store.similarity_search(question, k=10)],
    ]
    ranked = [rank(topic, region, search) for search in searches for topic, region in pairs]
    assert len(ranked) == 200
    assert sum(map(bool, ranked)) > 190
    assert [ids for ids in ranked if ids and not ids[0].startswith("new/")] == []


@pytest.fixture
def succession(store, tmp_path):
    write(tmp_path, BUNDLE)
    index(store, FolderSource(tmp_path))
    return store


def test_a_filter_that_leaves_out_the_successor_keeps_it_out(succession):
    hits = succession.search("churn", filter={"status": "deprecated"})

    assert [hit.document.id for hit in hits] == ["metrics/churn-old.md"]


def test_scores_fall_and_are_the_sums_of_their_parts(succession):
    hits = succession.search("Definition: use churn (old)", k=2)
    similar = succession.similarity_search("Definition: use churn (old)", k=1)

    assert [hit.document.id for hit in hits] == ["metrics/churn.md", "metrics/churn-old.md"]
    assert hits[0].score > hits[1].score
    assert all(sum(hit.contributions.values()) == pytest.approx(hit.score) for hit in hits)
    assert [document.id for document in similar] == ["metrics/churn.md"]


def test_pages_that_supersede_each_other_keep_their_order(store, tmp_path):
    text = "---\ntype: Note\ngenerated: {{by: a/1}}\nsuperseded_by: {}.md\n---\nText of the page {}.\n"
    write(tmp_path, {"a.md": text.format("b", "a"), "b.md": text.format("a", "b")})
    index(store, FolderSource(tmp_path))

    assert len(store.search("Text of the page a")) == 2
