# extras: agents, openai, plot
# %% [markdown]
# # An agent with tools over a graph
#
# Which regulation applies to a drug where it is approved? Two relations must meet: what governs the drug's class, and what
# the authority of its jurisdiction enforces. An agent finds it with the tools of a store, within limits that it cannot
# exceed. A scripted model plays the agent, so no key is needed; with `OPENAI_API_KEY` a model of OpenAI plays it.
# %% [markdown]
# ## The graph
#
# Documents are nodes, links are relations. There are three drugs, two classes and two jurisdictions. For each drug, both
# relations lead to exactly one regulation; only one of them leads to the others.
# %%
from langchain_core.documents import Document
from linkstore import Link, LinkStore, add_links

RELATIONS = {
    "class": ["BELONGS_TO"],
    "approval": ["HAS_APPROVAL"],
    "place": ["IN_JURISDICTION"],
    "regulation": ["GOVERNED_BY", "ENFORCES"],
}


def node(id: str, text: str, *links: tuple[str, str]) -> Document:
    sort = id.split("/")[0]
    made = Document(id=id, page_content=text, metadata={"type": sort})
    add_links(made, *(Link.incoming(kind=kind, tag=id) for kind in RELATIONS.get(sort, [])))
    add_links(made, *(Link.outgoing(kind=kind, tag=to) for kind, to in links))
    return made


def drug(name: str, class_: str, place: str) -> list[Document]:
    approval = f"approval/{name}"
    return [
        node(
            f"drug/{name}",
            f"{name} is a drug.",
            ("BELONGS_TO", f"class/{class_}"),
            ("HAS_APPROVAL", approval),
        ),
        node(approval, f"Marketing authorisation of {name}.", ("IN_JURISDICTION", f"place/{place}")),
    ]


def regulations(*numbers: int) -> list[str]:
    return [f"regulation/{number}" for number in numbers]


governed = {"azoles": regulations(1, 2, 3), "statins": regulations(4, 5, 6)}
enforced = {"Arvania": regulations(2, 4, 7), "Belmore": regulations(3, 6, 8)}
documents = [
    *drug("Zalamizole", "azoles", "Arvania"),
    *drug("Meroconazole", "azoles", "Belmore"),
    *drug("Tovastatin", "statins", "Arvania"),
    *(
        node(f"class/{name}", f"The {name} are a molecule class.", *(("GOVERNED_BY", one) for one in found))
        for name, found in governed.items()
    ),
    *(
        node(f"place/{name}", f"The authority of {name}.", *(("ENFORCES", one) for one in found))
        for name, found in enforced.items()
    ),
    *(node(one, f"Directive {one[-1]} on handling and storage.") for one in regulations(*range(1, 9))),
]
store = LinkStore.open(":memory:")
store.add_documents(documents)
print(store.survey().documents, "documents")
# %% [markdown]
# ## The tools
#
# `search`, `follow` and `read` for this store, which has no schema; others are made by name, here `match`. A search for similar texts cannot find
# that two chains of different relations end at the same document, because the text of the regulation does not mention
# drugs. With `match` a model says in Cypher which relations it means.
# %%
from linkstore.agents import ToolLimits, graph_tools

names = ["search", "match", "follow", "read"]
about = "drugs and what regulates them"
tools = graph_tools(store, only=names, about=about, limits=ToolLimits(results=3))
QUESTION = "Which directive applies to Zalamizole where it is approved?"
QUERY = {
    "query": """
MATCH (d {name: 'Zalamizole'})-[:BELONGS_TO]->()-[:GOVERNED_BY]->(x),
      (d)-[:HAS_APPROVAL]->()-[:IN_JURISDICTION]->()-[:ENFORCES]->(x)
RETURN x
"""
}
WRONG = {"query": "MATCH ({name: 'azoles'})-[:BELONGS_TO]->(x) RETURN x"}
by_name = {tool.name: tool for tool in tools}
match = by_name["match"]
print(match.invoke(QUERY))
# %% [markdown]
# The answer of a tool is also data: each link is a triple.
# %%
answer = match.invoke({"name": "match", "args": QUERY, "id": "1", "type": "tool_call"})
for chain in answer.artifact["results"][0]["chains"]:
    print([(triple["subject"], triple["kind"], triple["object"]) for triple in chain["triples"]])
# %% [markdown]
# If a model makes a mistake, such as an unknown kind of link, a step that leads nowhere or an unknown id, it gets a text
# that says what to do:
# %%
print(by_name["follow"].invoke({"id": "class/azoles", "kinds": ["GOVERND_BY"]}))
print(match.invoke(WRONG))
print(by_name["read"].invoke({"id": "regulation/99"}))
# %% [markdown]
# ## The agent
#
# The script does what a model would do: it takes a relation the wrong way, is told so, asks again, reads and answers.
# %%
import os
import re

from collections.abc import Callable

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult


class Scripted(BaseChatModel):
    """Answers with texts and tool calls, in order, or with what functions make of the messages."""

    script: list[str | dict | Callable]
    _llm_type = "scripted"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options):
        answer = self.script.pop(0)
        said = answer(messages) if callable(answer) else answer
        message = AIMessage(said) if isinstance(said, str) else AIMessage("", tool_calls=[said])
        return ChatResult(generations=[ChatGeneration(message=message)])


def first_id(messages: list[BaseMessage]) -> str:
    return re.findall(r"\[(regulation/\d+)\]", messages[-1].text)[0]


if os.environ.get("OPENAI_API_KEY"):
    from langchain_openai import ChatOpenAI

    model: BaseChatModel = ChatOpenAI(model="gpt-4o-mini", temperature=0)
else:
    model = Scripted(
        script=[
            tool_call(name="match", args=WRONG, id="1"),
            tool_call(name="match", args=QUERY, id="1"),
            lambda messages: tool_call(name="read", args={"id": first_id(messages)}, id="1"),
            lambda messages: f"{messages[-1].text.splitlines()[-2]} [{first_id(messages)}]",
        ]
    )
agent = create_agent(
    model, tools, system_prompt="Answer from the tools alone, and cite the ids of documents in brackets."
)
answer = agent.invoke({"messages": [("human", QUESTION)]})
for message in answer["messages"]:
    for call in getattr(message, "tool_calls", []):
        print(f"calls {call['name']}({', '.join(map(repr, call['args'].values()))})")
print(answer["messages"][-1].text)
# %% [markdown]
# ## A conversation
#
# A checkpointer keeps the state of the conversation. It is separate from the store, which the tools only read.
# %%
from langgraph.checkpoint.memory import InMemorySaver

if isinstance(model, Scripted):
    model = Scripted(
        script=[
            tool_call(name="follow", args={"id": "drug/Tovastatin", "kinds": ["BELONGS_TO"]}, id="1"),
            "Tovastatin belongs to the statins [class/statins].",
            tool_call(name="follow", args={"id": "class/statins"}, id="1"),
            lambda messages: (
                "These govern them: " + ", ".join(re.findall(r"\[(regulation/\d+)\]", messages[-1].text))
            ),
        ]
    )
talking = create_agent(model, tools, checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "1"}}
for question in ("What class does drug/Tovastatin belong to?", "Which regulations govern that class?"):
    answer = talking.invoke({"messages": [("human", question)]}, thread)
    print(answer["messages"][-1].text)
# %% [markdown]
# ## From text to the question
#
# Where the relations stand in texts, a model extracts them. It proposes nodes and relations, and a schema and the text
# decide: what does not fit becomes no document, and is reported. Here a script plays the model once more.
# %%
from linkstore.agents import TypedGraphExtractor
from linkstore.store import Relation, Schema

schema = Schema(
    types={"Drug", "Class", "Approval", "Place", "Rule"},
    relations=[
        Relation("BELONGS_TO", "Drug", "Class"),
        Relation("GOVERNED_BY", "Class", "Rule"),
        Relation("HAS_APPROVAL", "Drug", "Approval"),
        Relation("IN_PLACE", "Approval", "Place"),
        Relation("ENFORCES", "Place", "Rule"),
    ],
)
texts = [
    Document(id="leaflet", page_content="Pexalidine is a glycan. All glycans are governed by Directive 31."),
    Document(
        id="register", page_content="Approval A-7 of Pexalidine, for Corvia. Corvia enforces Directive 31."
    ),
]
proposals = [
    {
        "nodes": [
            {"type": "Drug", "name": "Pexalidine"},
            {"type": "Class", "name": "glycans", "aliases": ["glycan"]},
            {"type": "Rule", "name": "Directive 31"},
        ],
        "relations": [
            {"kind": "BELONGS_TO", "source": "Pexalidine", "target": "glycan", "quote": "is a glycan"},
            {"kind": "GOVERNED_BY", "source": "glycans", "target": "Directive 31"},
            {"kind": "BELONGS_TO", "source": "Directive 31", "target": "glycans"},
        ],
    },
    {
        "nodes": [
            {"type": "Drug", "name": "Pexalidine"},
            {"type": "Approval", "name": "A-7"},
            {"type": "Place", "name": "Corvia"},
            {"type": "Rule", "name": "Directive 31"},
        ],
        "relations": [
            {"kind": "HAS_APPROVAL", "source": "Pexalidine", "target": "A-7"},
            {"kind": "IN_PLACE", "source": "A-7", "target": "Corvia"},
            {"kind": "ENFORCES", "source": "Corvia", "target": "Directive 31"},
        ],
    },
]
reader = Scripted(script=[tool_call(name="ProposedGraph", args=one, id="1") for one in proposals])
extracted = TypedGraphExtractor(reader, schema, max_concurrency=1).extract(texts)  # its answers are in order
print(*extracted.rejections, sep="\n")
graph = LinkStore.open(":memory:")
graph.schema.set(schema)
graph.add_documents(list(extracted.documents))
print(
    graph_tools(graph)[0]
    .invoke({"question": "Which rules apply to Pexalidine where it is approved?"})
    .split("\n2. ")[0]
)
graph.close()
# %% [markdown]
# ## What the search found
# %%
from linkstore.explorer import show
from linkstore.strategies import AllPaths

show(store.search(QUESTION, strategy=AllPaths(k=8)), QUESTION)
# %% [markdown]
# Two links from Tovastatin, by way of its class, the agent found `regulation/4`, `regulation/5` and `regulation/6`.
