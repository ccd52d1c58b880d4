# extras: plot
# installs: matplotlib (matplotlib)
# %% [markdown]
# # Remember conversations
#
# People ask "How much does it weigh?" and mean what was said before. `ConversationMemory` finds what answers such a question,
# gives the newer of two facts, and erases all that was about a name. This notebook asks ten such questions with and
# without it. No key, no server.
# %% [markdown]
# ## A shop, and a conversation
# %%
from linkstore import LinkStore

KNOWN = {
    "Aurora": "The Aurora 80 is a refracting telescope. Its lens is 80 mm wide, and it weighs 3.2 kg.",
    "Aurora, price": "The price of the Aurora 80 is 249 euros, with two eyepieces.",
    "Borealis": "The Borealis 120 is a reflecting telescope. Its mirror is 120 mm wide, and it weighs 6.5 kg.",
    "Borealis, price": "The price of the Borealis 120 is 489 euros, with one eyepiece.",
    "Cygnus": "The Cygnus mount follows the sky by a motor. It carries up to 5 kg and weighs 4 kg.",
    "Cygnus, price": "The price of the Cygnus mount is 320 euros, with a cable.",
    "Draco": "The Draco mount is turned by hand. It carries up to 8 kg and weighs 2 kg.",
    "Draco, price": "The price of the Draco mount is 95 euros.",
    "delivery": "Parcels to islands are delivered on Thursdays, for 15 euros.",
    "warranty": "The warranty is three years on the optics, and two on mounts.",
}
knowledge = LinkStore.open(":memory:")
knowledge.add_texts(list(KNOWN.values()), ids=list(KNOWN))

TURNS = [
    ("Hello! I am looking for a telescope for my daughter.", "Hello! Has she had one before?"),
    (
        "No, it is her first one. What about the Aurora 80?",
        "The Aurora 80 is a good choice: it needs no care.",
    ),
    ("Thanks!", "You are welcome."),
    ("And the Borealis 120?", "The Borealis 120 shows more, and is for older children."),
    ("Which mount follows the sky?", "The Cygnus mount."),
    ("Got it.", "Is there anything else?"),
    ("Does the Draco mount have a motor?", "No, the Draco mount is turned by hand."),
]
# %% [markdown]
# ## What a model gets
#
# `prompt` has the conversation, what is known, and the question, within a budget of tokens:
# %%
from linkstore.memory import ConversationMemory, SessionKey

memory = ConversationMemory(LinkStore.open(":memory:"), knowledge)
session = SessionKey(user_id="ann", run_id="monday")
for query, response in TURNS[:2]:
    memory.add(session, query, response)
print(memory.recall(session, "How much is it?", budget=300).prompt)
# %% [markdown]
# ## Facts that give way
#
# The newer statement is recalled; the older one is for those who ask what was known then.
# %%
before = memory.add(session, "We live in Bergen.", "Noted.")
memory.add(session, "We moved to Voss last week, to a house by the lake.", "I changed the address.")
now = memory.recall(session, "Where do we live?")
then = memory.recall(session, "Where do we live?", as_of=before.time)
print("now: ", now.turns[0].query)
print("then:", then.turns[0].query)
# %% [markdown]
# ## Forget what was about a name
#
# What names it goes; a turn that refers to it only as "it" stays. `preview=True` shows what would go:
# %%
memory.add(session, "How much does the Aurora 80 weigh?", "3.2 kg.")
memory.add(session, "And is it easy to carry?", "Yes, in one hand.")
gone = memory.forget(SessionKey(user_id="ann", run_id="monday"), entity="Aurora 80")
print(len(gone.turns), "turns are gone; these stay:")
for turn in memory.turns(session):
    print("  ", turn.query)
# %% [markdown]
# ## Ten questions about what was said
#
# Each is asked after so many turns, and has one text that answers it. How far down is this text, for the plain question and
# for the recall, which searches for the question together with what was said before it?
# %%
ASKED = [
    (2, "How much is it?", "Aurora, price"),
    (2, "How much does it weigh?", "Aurora"),
    (3, "What does it cost?", "Aurora, price"),
    (4, "How much does it weigh?", "Borealis"),
    (4, "What is its price?", "Borealis, price"),
    (5, "What is its price?", "Cygnus, price"),
    (5, "How much does it carry?", "Cygnus"),
    (6, "How much does it weigh?", "Cygnus"),
    (7, "What does it cost?", "Draco, price"),
    (7, "How much can it carry?", "Draco"),
]
ranks: dict[str, list[int]] = {"plain question": [], "recall": []}
for number, (said, question, answer) in enumerate(ASKED):
    session = SessionKey(user_id="ann", run_id=f"after {said} turns, question {number}")
    for query, response in TURNS[:said]:
        memory.add(session, query, response)
    recall = memory.recall(session, question, k=10)
    found = {
        "plain question": [hit.document.id for hit in knowledge.search(question, k=10)],
        "recall": [hit.document.id for hit in recall.chunks],
    }
    for name, ids in found.items():
        ranks[name].append(ids.index(answer) + 1)
    print(f"{ranks['plain question'][-1]} → {ranks['recall'][-1]}  {question}")
for name, places in ranks.items():
    print(f"{name:15} first in {places.count(1)} of {len(places)}")
# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
labels = [f"{question} ({answer})" for _, question, answer in ASKED]
for (name, places), colour, size in zip(ranks.items(), ("#cc6677", "#4477aa"), (130, 40), strict=True):
    axes.scatter(places, range(len(labels)), label=name, color=colour, s=size)
axes.hlines(range(len(labels)), *(ranks[name] for name in ranks), color="#bbbbbb", zorder=0)
axes.set_yticks(range(len(labels)), labels)
axes.invert_yaxis()
axes.set_xlabel("rank of the text that answers")
axes.spines[["top", "right"]].set_visible(False)
axes.set_xticks(range(1, 1 + max(map(max, ranks.values()))))
axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
plt.show()
# %% [markdown]
# With recall, the text that answers is `first in 6 of 10` questions; with the plain question, `first in 2 of 10`.
