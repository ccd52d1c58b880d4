# extras: plot
# installs: matplotlib (matplotlib)
# %% [markdown]
# # Find links that are missing
#
# Authors link a page where they think of it, and name it without a link elsewhere. This notebook takes a small wiki,
# hides a third of its links, and asks for the links that are missing: those that were hidden come first. No key, no server.
# %% [markdown]
# ## A wiki
#
# Twelve notes on a kitchen garden, as somebody would write them. Double brackets are links.
# %%
import re
import shutil
import tempfile
from pathlib import Path

NOTES = {
    "Compost": "Kitchen scraps and leaves rot in a year. Never add the leaves of plants with [[Late blight]]. "
    "Turn the heap when you [[Digging over|dig over]] the beds, and spread it with the [[Green manure]].",
    "Crop rotation": "What stood in a bed last year decides what may follow. [[Tomatoes]] never follow "
    "[[Potatoes]], since both suffer from [[Late blight]]. [[Broad beans]] feed the soil for the next crop.",
    "Digging over": "In November the beds are turned once, and [[Compost]] goes under. "
    "After [[Green manure]] it is enough to cut it and to leave it.",
    "Green manure": "Phacelia and clover cover a bed in winter. [[Broad beans]] sown in autumn do the same. "
    "It belongs to every [[Crop rotation]].",
    "Broad beans": "Sow them in autumn, as [[Green manure]], or in March. [[Ladybirds]] eat the black aphids that come "
    "in May. They go before cabbage in the [[Crop rotation]].",
    "Late blight": "Brown spots on wet leaves. It kills [[Tomatoes]] and [[Potatoes]] in a week. "
    "A roof over the plants helps more than any spray.",
    "Tomatoes": "Sow them indoors in February on a [[Windowsill]], and plant them under a roof, as a guard against "
    "[[Late blight]]. They want much [[Compost]] and water from [[Rain barrels]].",
    "Potatoes": "Plant them in April and earth them up. New soil each year, by [[Crop rotation]]. [[Late blight]] "
    "ends the season.",
    "Ladybirds": "One of them eats fifty aphids a day. They winter in dry leaves, so leave some beside the [[Compost]]. "
    "They come first to [[Broad beans]].",
    "Windowsill": "Warm and light from February. [[Tomatoes]] and peppers begin here. Water them from "
    "[[Rain barrels]], not from the tap.",
    "Rain barrels": "Two of them under the gutter last three dry weeks. In summer the [[Tomatoes]] take most of it. "
    "Cover them, or mosquitoes breed.",
    "Slugs": "They come at night in wet years. Sow a strip of [[Green manure]] beside the beds, which they like better, "
    "and keep the [[Compost]] far from the lettuce.",
}
links = [(page, match) for page, text in NOTES.items() for match in re.finditer(r"\[\[([^]|]+)", text)]
print(len(NOTES), "notes,", len(links), "links")
# %% [markdown]
# ## Hide a third of the links
#
# Their brackets go, and the words stay: what an author who forgot the link would have written. Two notes that link each
# other keep their links: where one leads to the other, nothing is missing.
# %%
import random

random.seed(3)
all_pairs = {(page, match[1]) for page, match in links}
once = sorted(pair for pair in all_pairs if pair[::-1] not in all_pairs)
hidden = set(random.sample(once, len(links) // 3))


def hide(page: str, text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        return match[2] or match[1] if (page, match[1]) in hidden else match[0]

    return re.sub(r"\[\[([^]|]+)(?:\|([^]]+))?\]\]", replace, text)


folder = Path(tempfile.mkdtemp())
for page, text in NOTES.items():
    (folder / f"{page}.md").write_text(f"# {page}\n\n{hide(page, text)}\n")
print(len(hidden), "are hidden, such as", " → ".join(min(hidden)))
# %% [markdown]
# ## Ask for what is missing
#
# Each suggestion has a reason: the page is `named` without a link, or it is only `near`, similar and linked with the
# same pages.
# %%
from linkstore import LinkStore
from linkstore.ingest import VaultSource, index

store = LinkStore.open(":memory:")
index(store, VaultSource(folder), name="garden")


def name(page: str) -> str:
    return page.removesuffix(".md").replace("%20", " ")


suggested = store.links.suggest(k=20)
right = [(name(one.source_page), name(one.target_page)) in hidden for one in suggested]
for one, found in zip(suggested[:8], right, strict=False):
    pair = f"{name(one.source_page)} → {name(one.target_page)}"
    print(f"{'hidden' if found else '':7} {one.reason:6} {pair:30} {one.phrase}")
# %% [markdown]
# ## Beside similarity
#
# The obvious other way is to suggest the pairs of notes that are most similar and not linked. How many of the hidden
# links are among the first suggestions:
# %%
from itertools import combinations

import numpy as np

pages = sorted(NOTES)
vectors = np.array(store.embeddings.embed_documents([hide(page, NOTES[page]) for page in pages]))
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
linked = {frozenset(pair) for pair in all_pairs - hidden}
pairs = [
    (float(vectors[a] @ vectors[b]), frozenset((pages[a], pages[b])))
    for a, b in combinations(range(len(pages)), 2)
    if frozenset((pages[a], pages[b])) not in linked
]
similar = [pair in set(map(frozenset, hidden)) for _, pair in sorted(pairs, key=lambda one: -one[0])]
# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
shown = min(len(suggested), len(similar))
for label, order, colour in (("suggest_links", right, "#4477aa"), ("similarity alone", similar, "#cc6677")):
    axes.plot(range(1, shown + 1), np.cumsum(order[:shown]), marker="o", ms=3, label=label, color=colour)
axes.set_xlabel("first suggestions")
axes.set_ylabel("hidden links among them")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
plt.show()
# %% [markdown]
# ## Write them
#
# `add_suggested_links` writes them as links of the kind `suggested`, which a search follows only if it is asked to. Here
# are the notes again, with those that were right:
# %%
from linkstore.explorer import show

store.links.accept([one for one, found in zip(suggested, right, strict=True) if found])
shutil.rmtree(folder)
show(store)
# %% [markdown]
# The first 9 suggestions of `suggest_links` are all hidden links; similarity alone finds 1 among as many.
