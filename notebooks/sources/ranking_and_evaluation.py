# extras: plot
# installs: matplotlib (matplotlib)
# %% [markdown]
# # Ranking and evaluation
#
# Do links find answers that a search without them misses? It depends on your documents, and can be measured before you decide.
# This notebook measures it twice: on texts where each answer is one name away, and on the same texts with wrong links. No key,
# no server.
# %% [markdown]
# ## Texts, and questions with answers
#
# A made-up register of people, firms and towns. To say in which town somebody works takes two of its texts: one names the
# firm, the other its seat. With documents of your own, write a few dozen questions and the ids of the documents that answer
# them; `read_questions` reads them from a file.
# %%
import random
import warnings

from langchain_core.documents import Document
from linkstore import LinkStore
from linkstore.errors import LinkStoreWarning
from linkstore.evaluate import GoldQuestion
from linkstore.ingest import link_corpus

random.seed(7)
GIVEN = [
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gus",
    "Hana",
    "Ida",
    "Jon",
    "Kai",
    "Lena",
    "Mia",
    "Nils",
    "Olga",
    "Paul",
    "Rosa",
    "Sven",
    "Tess",
    "Uma",
]
FAMILY = [
    "Abel",
    "Brook",
    "Carr",
    "Dahl",
    "Egan",
    "Frost",
    "Grove",
    "Hale",
    "Irwin",
    "Jarvis",
    "Kemp",
    "Lund",
    "Moss",
    "Noble",
    "Orr",
    "Pike",
    "Quill",
    "Reed",
    "Stone",
    "Thorn",
]
TOWNS = [
    "Almere",
    "Bergholt",
    "Carnforth",
    "Dunmore",
    "Eskdale",
    "Fallow",
    "Garth",
    "Haddon",
    "Ilton",
    "Jarrow",
]
FIRMS = [
    f"{name} {sort}"
    for name in ("Ostler", "Pryor", "Quarle", "Rudge", "Selby")
    for sort in ("Mills", "Press", "Works")
]
TRADES = ("an engineer", "a clerk", "a typesetter", "a foreman", "a weaver", "a chemist")
people = random.sample([f"{given} {family}" for given in GIVEN for family in FAMILY], 60)
firm_of = {person: random.choice(FIRMS) for person in people}
texts = {
    **{
        person: f"{person} is {random.choice(TRADES)} at {firm_of[person]}, and sings in a choir."
        for person in people
    },
    **{
        firm: f"{firm} was founded in {random.randint(1850, 1950)}, in a brick building in {random.choice(TOWNS)}."
        for firm in FIRMS
    },
    **{
        town: f"{town} is a town of {random.randint(4, 90)},000 people with a weekly market."
        for town in TOWNS
    },
}
documents = [Document(id=name, page_content=text, metadata={"title": name}) for name, text in texts.items()]
questions = [
    GoldQuestion(question=f"In which town does {person} work?", gold=(person, firm_of[person]))
    for person in people
]
warnings.simplefilter("ignore", LinkStoreWarning)  # they have no link yet
store = LinkStore.open(":memory:")
store.add_documents(documents)
print(
    len(documents), "documents;", dict(link_corpus(store, ["mention"]).links), "links from the names in them"
)
print(questions[0].question, *(texts[id] for id in questions[0].gold), sep="\n    ")
# %% [markdown]
# ## Will links help?
#
# Before you tune anything, a profile says what the links of a store can do for your questions.
# %%
from linkstore.evaluate import profile

print(profile(store, questions).verdict)
# %% [markdown]
# ## Strategies side by side
#
# `evaluate` runs every strategy on every question. Recall is the share of a question's answers among the first hits. The
# 95 % interval, by resampling the questions, shows how much it would vary with other questions of this sort.
# %%
from linkstore.evaluate import evaluate

result = evaluate(store, questions)
print(f"{'':16} recall@2  recall@5   over dense, 95 %")
for outcome in result.outcomes:
    two, five, gain = outcome.measures["recall@2"], outcome.measures["recall@5"], outcome.gains["recall@5"]
    print(
        f"{outcome.name:16} {two.value:8.2f} {five.value:9.2f}   "
        f"{gain.value:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}]"
    )
# %%
import matplotlib.pyplot as plt

shown = result.outcomes
figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
recalls = [outcome.measures["recall@5"].value for outcome in shown]
bars = axes.barh([outcome.name for outcome in shown], recalls, color="#4477aa")
axes.bar_label(bars, labels=[f"{recall:.0%}" for recall in recalls], padding=4)
axes.set_xlim(0, 1.1)
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
axes.set_title(f"answers among the first 5, {len(questions)} questions")
plt.show()
# %% [markdown]
# ## The same texts with wrong links
#
# Each document now has links to two others drawn by lot. The verdict says so, before anybody relies on them.
# %%
from linkstore import Link, add_links

wrong = [Document(id=one.id, page_content=one.page_content, metadata={"title": one.id}) for one in documents]
for document in wrong:
    add_links(document, Link.incoming(kind="mention", tag=str(document.id)))
    add_links(document, *(Link.outgoing(kind="mention", tag=name) for name in random.sample(list(texts), 2)))
misled = LinkStore.open(":memory:")
misled.add_documents(wrong)
print(profile(misled, questions).verdict)
# %% [markdown]
# Both sets are made up to show how to measure. The benchmarks in the documentation have questions that people wrote, on large
# corpora.
# %% [markdown]
# ## One question, one path
#
# The answers to the first question, ranked by `PageRank`: the name of the firm leads from the person to its seat.
# %%
from linkstore.explorer import show
from linkstore.strategies import PageRank

question = questions[0]
hits = store.search(question.question, strategy=PageRank(start_k=1, k=3))
print(*(f"{hit.document.id}: {hit.path}" for hit in hits), sep="\n")
show(hits, question.question)
# %% [markdown]
# Where links say what belongs together, `pagerank` finds 100% of the answers and `similarity` 49%; where they are drawn by
# lot, the verdict is “No difference shown”.
