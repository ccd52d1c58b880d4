# extras: openai, plot
# installs: langgraph>=1 (langgraph)
# %% [markdown]
# # A RAG chain and an agent that follow links
#
# The answer to a question is often one link away from what a search finds. This notebook asks the same chain about
# the manual of SQLite with and without links: only with links its answer is right. Then a LangGraph agent decides itself when
# to search and which links to follow. With `OPENAI_API_KEY` in the environment, a model of OpenAI answers; without it, a
# scripted model does.
# %% [markdown]
# ## A store
# %%
from linkstore import LinkStore
from linkstore.cli.demo import site
from linkstore.ingest import FolderSource, index

store = LinkStore.open(":memory:")
with site("sqlite") as folder:
    summary = index(store, FolderSource(folder), links=["hyperlink", "section"])
print(f"{summary.pages.added} pages of SQLite's manual, {summary.links['hyperlink']:,} hyperlinks")
# %% [markdown]
# ## A model
#
# The scripted model does by rules what a model would do here. With tools, it searches, and then follows the links of the
# best page. Asked for an answer, it quotes the best passage that a link led to, else the first.
# %%
import os
import re
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable


class Scripted(BaseChatModel):
    """Stands in for a model where there is no key."""

    tools: list[str] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.model_copy(update={"tools": [tool.name for tool in tools]})

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        message = self._next_call(messages) or AIMessage(quoted(messages))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _next_call(self, messages: list[BaseMessage]) -> AIMessage | None:
        """First a search, then the links of what it found, then no call."""
        answers = [message for message in messages if isinstance(message, ToolMessage)]
        if len(answers) >= len(self.tools):
            return None
        name = self.tools[len(answers)]
        if name == "search":
            arguments = {"question": messages[-1].text}
        else:
            arguments = {"page": re.findall(r"^\[(\S+)\]", answers[-1].text, re.MULTILINE)[0]}
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{len(answers)}"}])


def quoted(messages: list[BaseMessage]) -> str:
    """The first passage that a link led to, else the first."""
    text = "\n".join(message.text for message in messages)
    passages = re.findall(r"^\[(\S+)\] (?:\(by “(.*?)”\) )?(.*)$", text, re.MULTILINE)
    url, _, passage = next((found for found in passages if found[1]), passages[0])
    return f"{passage[:200]}… [{url}]"


if os.environ.get("OPENAI_API_KEY"):
    from langchain_openai import ChatOpenAI

    model: BaseChatModel = ChatOpenAI(model="gpt-4o-mini", temperature=0)
else:
    model = Scripted()
print(type(model).__name__)
# %% [markdown]
# ## A chain
#
# The retriever searches as a store does by default. The model gets each passage with its URL and, if a link led to it, the
# label of that link, which often says what the passage itself does not.
# %%
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough


def passage(document: Document) -> str:
    found = document.metadata.get("linkstore")  # how a search with links came to it
    label = found["path"][-1]["label"] if found and found["depth"] else None
    text = " ".join(document.page_content.split())
    return f"[{document.metadata['url']}] {f'(by “{label}”) ' if label else ''}{text}"


def passages(documents: list[Document]) -> str:
    return "\n".join(map(passage, documents))


prompt = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer from these passages alone, and name the URL.\n\n{passages}"),
        ("human", "{question}"),
    ]
)
retriever = store.as_retriever()


def answering(retriever: Runnable[str, list[Document]]) -> Runnable[str, str]:
    given = {"passages": retriever | passages, "question": RunnablePassthrough()}
    return given | prompt | model | StrOutputParser()


QUESTION = "Do I need a licence to use it in a product?"
print(QUESTION)
print(answering(retriever).invoke(QUESTION))
# %% [markdown]
# ## The same chain without links
#
# By similarity alone, the page that answers is not among four passages. The retriever has it, by a link of the FAQ.
# %%
tried = {
    "by default": retriever,
    "by similarity": store.as_retriever(search_type="similarity", search_kwargs={"k": 4}),
}
for name, asked in tried.items():
    pages = [document.metadata["page"] for document in asked.invoke(QUESTION)]
    print(f"{name}: {', '.join(pages)}")
    print("   ", answering(asked).invoke(QUESTION))
# %% [markdown]
# ## An agent
#
# It has two tools: one searches, the other follows the links of a page. The agent decides which to call.
# %%
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def search(question: str) -> str:
    """Find passages about a question. Each line is a page in brackets, then what it says."""
    return passages(store.search(question, k=1).documents())


@tool
def follow(page: str) -> str:
    """Read what a page links to. Each line is a page in brackets, the words of the link, what it says."""
    lines = []
    for near in store.links.neighbours(page).outgoing:
        if near.link.kind == "hyperlink":
            for document in store.get_by_ids(list(near.ids)):
                text = " ".join(document.page_content.split())
                lines.append(f"[{document.id}] (by “{near.link.label}”) {text}")
    return "\n".join(lines)


tools = [search, follow]
deciding = model.bind_tools(tools)


def decide(state: MessagesState) -> dict[str, list[BaseMessage]]:
    return {"messages": [deciding.invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("model", decide)
graph.add_node("tools", ToolNode(tools))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
agent = graph.compile()

answer = agent.invoke({"messages": [("human", QUESTION)]})
for message in answer["messages"]:
    for call in getattr(message, "tool_calls", []):
        print(f"calls {call['name']}({', '.join(map(repr, call['args'].values()))})")
print()
print(answer["messages"][-1].text)
# %% [markdown]
# ## How the passages of the chain were found
# %%
from linkstore.explorer import show

show(store.search(QUESTION, k=4), QUESTION)
# %% [markdown]
# With links the chain quotes `copyright.html`, “SQLite is in the Public Domain”; by similarity alone it quotes `qmplan.html`,
# which is about plans for quality.
