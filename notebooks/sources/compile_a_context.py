# extras: plot
# installs: matplotlib (matplotlib)
# %% [markdown]
# # A context that has what the answer builds upon
#
# A clause uses a term that another page defines by a third one. A context filled with what is most similar to the question
# has the clause many times, and the definition never. `ContextCompiler` follows the links: with the same number of
# tokens, both are there, and the definition comes first. No key, no server.
# %% [markdown]
# ## Forty contracts
#
# Each contract has a clause on late payment, which names a rate; the rate is defined by a base, and only the text of the base
# has a number. Each leads to the next by a link, as in any wiki of a legal department.
# %%
import random

from langchain_core.documents import Document

from linkstore import Link, LinkStore, add_links

random.seed(1)
FIRMS = [
    f"{a}{b}"
    for a in ("Nor", "Sud", "Ost", "Alt", "Mer")
    for b in ("vik", "berg", "hall", "wood", "mark", "ling", "ton", "sted")
]
RATES = ["amber", "birch", "cedar", "delta", "ember", "flint", "grove", "heron", "indigo", "juniper"]
BASES = ["Kestrel", "Lantern", "Marlin", "Nimbus", "Osprey"]
numbers = {base: f"{random.randint(2, 9)}.{random.randint(11, 99)} %" for base in BASES}
base_of = {rate: BASES[at % len(BASES)] for at, rate in enumerate(RATES)}


def page(id: str, text: str, *leads_to: str) -> Document:
    document = Document(id=id, page_content=text, metadata={"page": id, "title": id})
    add_links(document, Link.incoming(kind="hyperlink", tag=id))
    add_links(document, *(Link.outgoing(kind="hyperlink", tag=target) for target in leads_to))
    return document


documents, truth = [], {}
for at, firm in enumerate(FIRMS):
    rate = RATES[at % len(RATES)]
    truth[firm] = (f"{firm} late payment", f"{rate} rate", base_of[rate])
    documents += [
        page(
            f"{firm} late payment",
            f"Contract with {firm}, late payment: on each sum that {firm} pays late, interest at the {rate} rate is due.",
            f"{rate} rate",
        ),
        page(
            f"{firm} delivery",
            f"Contract with {firm}, delivery: {firm} receives goods within ten days of an order.",
        ),
        page(
            f"{firm} notice",
            f"Contract with {firm}, notice: {firm} ends the contract three months before a year ends.",
        ),
    ]
documents += [
    page(f"{rate} rate", f"The {rate} rate is two points above {base_of[rate]}.", base_of[rate])
    for rate in RATES
]
documents += [page(base, f"{base} stands at {numbers[base]} until the board meets again.") for base in BASES]
store = LinkStore.open(":memory:")
store.add_documents(documents)
print(len(documents), "documents")
# %% [markdown]
# ## One question
#
# What is due if Norvik pays late? The answer needs three documents: clause, rate and base.
# %%
from linkstore.context import ContextCompiler

question = "What interest is due if Norvik pays late?"
compiled = ContextCompiler(store, budget=100).compile(question)
print(compiled.text)
print()
print(compiled.tokens, "tokens")
# %% [markdown]
# ## The same budget filled by similarity
#
# The nearest documents, one after the other, as long as they fit:
# %%
from linkstore.strategies import Similarity


def fill(question: str, budget: int) -> list[str]:
    """Take the most similar documents that fit, as a context is usually made."""
    by_similarity = ContextCompiler(store, budget=budget, strategy=Similarity(k=50), order="relevance")
    return [item.id for item in by_similarity.compile(question).items]


for id in fill(question, 100):
    print(id)
# %% [markdown]
# ## The bill
#
# `explain()` says what was taken at what cost, what was left out, and why:
# %%
print(*str(compiled.explain()).splitlines()[:12], sep="\n")
# %% [markdown]
# ## All contracts
#
# The contracts are made up to show the difference; the benchmarks in the documentation have contexts for questions on large
# corpora that people wrote. # How many contexts have all three documents, for each of the forty contracts, by the budget in tokens:
# %%
budgets = [60, 80, 100, 150, 200, 400]
share: dict[str, list[float]] = {"compiled": [], "by similarity": []}
for budget in budgets:
    compiler = ContextCompiler(store, budget=budget)
    whole = {"compiled": 0, "by similarity": 0}
    for firm, needed in truth.items():
        asked = f"What interest is due if {firm} pays late?"
        whole["compiled"] += set(needed) <= {item.id for item in compiler.compile(asked).items}
        whole["by similarity"] += set(needed) <= set(fill(asked, budget))
    for name, count in whole.items():
        share[name].append(count / len(truth))
for name, shares in share.items():
    print(f"{name:14}", *(f"{budget}: {one:4.0%}  " for budget, one in zip(budgets, shares, strict=True)))
# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for (name, shares), colour in zip(share.items(), ("#4477aa", "#cc6677"), strict=True):
    axes.plot(budgets, shares, marker="o", label=name, color=colour)
axes.set_xlabel("tokens of the context")
axes.set_ylabel("contexts with clause, rate and base")
axes.set_ylim(-0.03, 1.05)
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="center right")
plt.show()
# %% [markdown]
# From 100 tokens on, 100% of the compiled contexts have clause, rate and base, and none of those filled `by similarity`.
