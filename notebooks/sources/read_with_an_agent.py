# extras: agents, openai
# %% [markdown]
# # Read with an agent
#
# A reader answers from the best passages of a search in one call where they suffice. Else the model says what to search for or to
# read, and is asked again; what it found out becomes findings. Here `first=1` shows the first call one passage alone, so that there is
# something left to read. With `OPENAI_API_KEY` in the environment, a model of OpenAI decides; without it, a scripted model does.
# %% [markdown]
# ## A page of an encyclopaedia
#
# Six sections, some of which link to others.
# %%
import os
import tempfile
from pathlib import Path

from linkstore import LinkStore
from linkstore.ingest import FolderSource, index

PAGE = """<!doctype html><html><head><title>Joan of Arc</title></head><body><main>
<h1>Joan of Arc</h1>
<p>Joan of Arc led French troops in the Hundred Years' War. She is a patron saint of France.</p>
<h2 id="youth">Youth</h2>
<p>Joan was born around 1412 in Domrémy, a village on the Meuse. Her father Jacques farmed about 50 acres. She said that she
heard voices from the age of thirteen. They told her to bring the heir of the throne <a href="#coronation">to his
crown</a>.</p>
<h2 id="chinon">The journey to Chinon</h2>
<p>Robert de Baudricourt gave her an escort in Vaucouleurs. She rode for eleven days in the clothes of a man. In Chinon she met
Charles, the son of the dead king, in March 1429. He had her examined, and then <a href="#orleans">sent her to
Orléans</a>.</p>
<h2 id="orleans">The siege of Orléans</h2>
<p>English troops had besieged Orléans since October 1428. Joan reached the city on 29 April 1429 with supplies. The siege was
lifted nine days later. An arrow wounded her at the fort of Les Tourelles.</p>
<h2 id="coronation">The coronation</h2>
<p>The victory at Patay opened the road to Reims. Charles VII was crowned in the cathedral of Reims on 17 July 1429. Joan stood
beside the altar with her banner.</p>
<h2 id="trial">Capture and trial</h2>
<p>Burgundians captured her near Compiègne in May 1430. They sold her to the English for ten thousand livres. The bishop
Pierre Cauchon led her trial in Rouen. She was burned on 30 May 1431. A second trial declared the first one void in
1456.</p>
</main></body></html>"""

store = LinkStore.open(":memory:")
with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "joan.html").write_text(PAGE, encoding="utf-8")
    index(store, FolderSource(folder))
print(*(document.id for document in store.scan()), sep="\n")
# %% [markdown]
# ## Facts
#
# They are not needed, but help to find passages. Each chunk is divided into facts, and each fact is linked to its key
# elements, by a model. The scripted model takes each
# sentence for a fact, and its names for key elements.
# %%
import re
from collections.abc import Iterator
from itertools import repeat

from langchain_core.language_models import SimpleChatModel
from linkstore.agents import ModelExtractor, index_facts
from linkstore.agents.facts import ExtractedFact, ExtractedFacts


class Scripted(SimpleChatModel):
    """Answers with objects as JSON, in order, or with what functions make of the messages."""

    script: Iterator
    _llm_type = "scripted"

    def _call(self, messages, stop=None, run_manager=None, **options):
        answer = next(self.script)
        return (answer(messages) if callable(answer) else answer).model_dump_json()


def facts_in(messages) -> ExtractedFacts:
    passage = messages[1].text.partition("Passage:\n")[2]
    return ExtractedFacts(
        facts=[
            ExtractedFact(fact=sentence, key_elements=re.findall(r"[A-Z]\w+(?: [A-Z]\w+)*", sentence))
            for sentence in re.split(r"(?<=[.!?])\s+", passage)
        ]
    )


def model_for(script):
    if os.environ.get("OPENAI_API_KEY"):
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model="gpt-4.1-mini", temperature=0)
    return Scripted(script=iter(script))


facts = LinkStore()
summary = index_facts(store, ModelExtractor(model_for(repeat(facts_in))), facts=facts)
print(f"{summary.facts} facts")
for document in facts.similarity_search("How did Joan come to Chinon?", k=4):
    print("-", document.page_content)
# %% [markdown]
# ## The reader
#
# The scripted model answers as a model would, each time with statements, or with what to read or to search for. Passages have
# numbers. A reader can only read and cite what it was shown: a number that a model invents is refused, and a statement with names or
# numbers that its passage lacks.
# %%
from linkstore.agents.prompts import CitedReply, CitedStatement


def number(messages, words: str) -> str:
    line = next(line for line in messages[1].text.splitlines() if words in line and "[P" in line)
    return re.search(r"\[(P\d+)\]", line)[1]


def state(text: str, cited: str, **more):
    def reply(messages) -> CitedReply:
        statement = CitedStatement(text=text, passages=[number(messages, cited)])
        return CitedReply(statements=[statement], **more)

    return reply


BORN = "Where was Joan of Arc born?"
WEATHER = "What is the weather in Spain?"
CROWNED = "In which cathedral was the man crowned whom Joan met in Chinon?"
SCRIPTS = {
    BORN: [state("Joan of Arc was born in Domrémy.", "Youth", answered=True)],
    WEATHER: [CitedReply(search=["weather in Spain"]), CitedReply(read=["P99"])],
    CROWNED: [
        state("She met Charles in Chinon.", "Chinon", search=["Charles crowned"]),
        state("Charles VII was crowned in the cathedral of Reims.", "coronation", answered=True),
    ],
}


# %% [markdown]
# ## A simple question
# %%
from linkstore.agents import graph_reader

reader = graph_reader(store, model_for(SCRIPTS[BORN]), facts=facts, first=1)
found = reader.invoke(BORN)
print(found, "–", *found.citations)
# %% [markdown]
# ## A question that the source does not answer
#
# The model invents the number of a passage, which is refused. The outcome of the reading is "not in the sources".
# %%
reader = graph_reader(store, model_for(SCRIPTS[WEATHER]), facts=facts, first=1)
found = reader.invoke(WEATHER)
print(found.outcome, "– searched for:", *found.searched)
# %% [markdown]
# ## A question of several steps
#
# Each step depends on what the last one found. The reader streams its steps.
# %%
reader = graph_reader(store, model_for(SCRIPTS[CROWNED]), facts=facts, first=1)
for found in reader.stream(CROWNED):
    print(found.actions[-1]["text"])
print()
print(found, "–", *found.citations)
# %% [markdown]
# ## The links
#
# What the default search finds for this question, with the links that led to it.
# %%
store.search(CROWNED, k=3).graph()
# %% [markdown]
# The answer, “crowned in the cathedral of Reims”, cites the two passages that it needs: `joan.html#chinon` and
# `joan.html#coronation`.
