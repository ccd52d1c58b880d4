# extras: plot
# installs: matplotlib (matplotlib)
# %% [markdown]
# # Ranking and evaluation
#
# Which strategy finds the answers to your questions, and do links help at all? This notebook measures it on questions
# with known answers, with plots. No key, no server.
# %% [markdown]
# ## A store, and questions with answers
#
# The small site that ships with linkstore, and questions that take two of its sections to answer. With your own pages,
# write a few dozen questions and the ids of the chunks that answer them; `read_questions` reads them from a file.
# %%
from linkstore import LinkStore
from linkstore.cli.demo import site
from linkstore.evaluate import GoldQuestion
from linkstore.ingest import FolderSource, index

store = LinkStore.open(":memory:")
with site() as folder:
    summary = index(store, FolderSource(folder))

asked = {
    "What is the neighbourhood around the landmark of the 1962 fair called?": "space-needle.html#location uptown.html",
    "Who drew the tower that became the symbol of the fair, and what else did he save?": "space-needle.html#design pike-place-market.html#saved",
    "Whose guitars hang in the museum that the trains pass through?": "monorail.html#route mopop.html#collection",
    "What did the architect of the fair's science pavilion design later?": "century-21.html#theme science-center.html#pavilion",
    "Where are the guitars of the bands that played in the clubs of Capitol Hill?": "capitol-hill.html#music mopop.html#collection",
    "How long is the ride from downtown to the museum of rock music?": "seattle-center.html#grounds monorail.html#route",
    "What is the hill of the famous view on postcards named after?": "kerry-park.html queen-anne-hill.html",
    "What helped streetcars up the hill north of Uptown?": "uptown.html queen-anne-hill.html#counterbalance",
    "Who designed the hall that the State of Washington built for the fair?": "century-21.html#theme arena.html#roof",
    "Which teams play in the hall of the fair?": "century-21.html#theme arena.html",
    "When did the market that an architect of the tower defended open?": "pike-place-market.html#saved pike-place-market.html",
    "How tall is the landmark that the fair left?": "century-21.html#legacy space-needle.html#design",
    "Where does one change to light rail on the way to the old fairgrounds?": "seattle-center.html#grounds monorail.html#stations",
    "Who gave the small park on the slope of the hill to the city?": "queen-anne-hill.html#views kerry-park.html#gift",
    "Which bridge leads to the hill of the Counterbalance?": "queen-anne-hill.html#counterbalance fremont.html#bridge",
    "How many people came to the fair that the monorail was built for?": "monorail.html century-21.html",
}
questions = [GoldQuestion(question=question, gold=tuple(gold.split())) for question, gold in asked.items()]
print(f"{summary.chunks} chunks, {len(questions)} questions")
# %% [markdown]
# ## Will links help?
#
# Before you tune anything, a profile shows what the links of a store can do: how many there are, how large their link
# groups are, and how often they lead from one answer of a question to another.
# %%
from linkstore.evaluate import profile

found = profile(store, questions)
print(found.verdict)
print(f"{found.reached_share:.0%} of the chunks can be reached by a link from another")
print(f"{'kind':10} links  dangling  link groups")
for kind, one in found.links.items():
    print(f"{kind:10} {one.links:5} {one.dangling:9} {one.groups:12}")
# %% [markdown]
# ## Strategies side by side
#
# `evaluate` runs every strategy on every question. Recall is the share of a question's answers among the first hits. The
# 95 % interval, by resampling the questions, shows how much it would vary with other questions of this sort.
# %%
from linkstore.evaluate import evaluate

result = evaluate(store, questions)
print(f"{'':10} recall@2  recall@5   over dense, 95 %     ms")
for outcome in result.outcomes:
    two, five, gain = outcome.measures["recall@2"], outcome.measures["recall@5"], outcome.gains["recall@5"]
    print(
        f"{outcome.name:10} {two.value:8.2f} {five.value:9.2f}   "
        f"{gain.value:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}] {outcome.ms_per_query:6.1f}"
    )
# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
cutoffs = (2, 5, 10, 20)
for outcome in result.outcomes:
    if outcome.name != "default":
        recalls = [outcome.measures[f"recall@{k}"].value for k in cutoffs]
        axes.plot(range(len(cutoffs)), recalls, marker="o", linewidth=2, label=outcome.name)
axes.set_xticks(range(len(cutoffs)), [f"first {k}" for k in cutoffs])
axes.set_ylabel("answers found")
axes.grid(axis="y", alpha=0.3)
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
axes.set_title(f"{len(questions)} questions with two answers each, {summary.chunks} chunks")
plt.show()
# %% [markdown]
# ## How far to follow, and which links
#
# You can compare strategies with any settings, under names of your own. Here: how many links to follow in a row, and
# whether links between neighbouring sections help.
# %%
from linkstore.strategies import Eager

tried = {
    (kinds, depth): Eager(start_k=4, depth=depth, kinds={"hyperlink": 1.0} if kinds == "hyperlinks" else None)
    for kinds in ("hyperlinks", "all links")
    for depth in range(4)
}
result = evaluate(store, questions, {f"{kinds}, {depth}": one for (kinds, depth), one in tried.items()})
figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
for kinds in ("hyperlinks", "all links"):
    measured = [result[f"{kinds}, {depth}"].measures["recall@10"] for depth in range(4)]
    axes.plot(range(4), [one.value for one in measured], marker="o", linewidth=2, label=kinds)
    axes.fill_between(range(4), [one.low for one in measured], [one.high for one in measured], alpha=0.12)
axes.set_xticks(range(4), [f"depth {depth}" for depth in range(4)])
axes.set_ylabel("answers among the first 10")
axes.grid(axis="y", alpha=0.3)
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right")
plt.show()
# %% [markdown]
# Sixteen questions on a small site only show how to measure: the intervals are wide. The benchmarks in the documentation
# show what PageRank, weights and depth do on large corpora.
# %% [markdown]
# ## One question, one path
#
# The answers to the first question, ranked by `PageRank`. Links from several documents lead to them.
# %%
from linkstore.strategies import PageRank

question = questions[0]
hits = store.search(question.question, strategy=PageRank(start_k=2, k=10))
print([hit.document.id for hit in hits])
hits.explore(question.question)
