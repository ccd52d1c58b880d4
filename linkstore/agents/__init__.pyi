from .answers import Answer as Answer, Budget as Budget
from .chat_models import chat_model as chat_model
from .facts import (
    Fact as Fact,
    FactExtractor as FactExtractor,
    ModelExtractor as ModelExtractor,
    aindex_facts as aindex_facts,
    index_facts as index_facts,
)
from .graph_questions import ask_graph as ask_graph
from .reader import GraphReader as GraphReader, graph_reader as graph_reader
from .tool_answers import ToolLimits as ToolLimits
from .tools import graph_tools as graph_tools
from .typed_graph import TypedGraphExtractor as TypedGraphExtractor
