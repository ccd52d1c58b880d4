"""What depends on documents: equal to looking at every link."""

from __future__ import annotations

import random

import pytest
from graph_cases import make_graph
from internals import call_plan, find_impact, run
from langchain_core.documents import Document

from linkstore import LinkStore, get_links


def list_links(documents: list[Document]) -> set[tuple[str, str, str, str]]:
    """Return every (from, to, kind, tag) between documents."""
    return {
        (str(source.id), str(target.id), out.kind, out.tag)
        for source in documents
        for out in get_links(source)
        if out.leads_out
        for target in documents
        if target is not source
        and any(into.leads_in and (into.kind, into.tag) == (out.kind, out.tag) for into in get_links(target))
    }


@pytest.mark.parametrize("seed", range(6))
def test_impact_is_what_every_link_says(seed: int) -> None:
    documents = make_graph(random.Random(seed))
    links = list_links(documents)
    with LinkStore() as store:
        store.add_documents(documents)
        for count in (1, 1, 1, 2, 3):
            own = {f"d{n}" for n in random.Random(seed + count).sample(range(24), count)}
            impact = run(call_plan(store.backend, find_impact(sorted(own))))
            into = [link for link in links if link[1] in own and link[0] not in own]
            led = {link[2:] for link in links if link[1] not in own} | {
                (link.kind, link.tag)
                for document in documents
                if document.id not in own
                for link in get_links(document)
                if link.leads_in
            }
            ends = {link[1] for link in links if link[0] in own} - own
            kept = {link[1] for link in links if link[0] not in own}
            assert impact.linking == tuple(sorted({link[0] for link in into}))
            assert impact.dangling == tuple(sorted({link[0] for link in into if link[2:] not in led}))
            assert impact.orphaned == tuple(sorted(ends - kept))
