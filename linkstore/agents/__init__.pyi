from .answers import Answer as Answer
from .chat_models import chat_model as chat_model
from .fact_index import (
    ModelExtractor as ModelExtractor,
    aindex_facts as aindex_facts,
    fact_store as fact_store,
    index_facts as index_facts,
)
from .facts import Fact as Fact, FactExtractor as FactExtractor
from .graph_questions import ask_graph as ask_graph
from .reader import GraphReader as GraphReader, graph_reader as graph_reader
from .state import Budget as Budget
from .tool_answers import ToolLimits as ToolLimits
from .tools import graph_tools as graph_tools
from .typed_graph import (
    TypedGraphExtractor as TypedGraphExtractor,
)
