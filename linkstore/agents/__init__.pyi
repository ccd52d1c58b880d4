from .answers import Answer as Answer, Citation as Citation, AnswerStatement as AnswerStatement
from .chat_models import chat_model as chat_model
from .fact_index import (
    FactReport as FactReport,
    FactSummary as FactSummary,
    ModelExtractor as ModelExtractor,
    aindex_facts as aindex_facts,
    describe_facts as describe_facts,
    fact_store as fact_store,
    index_facts as index_facts,
)
from .facts import Fact as Fact, FactExtractor as FactExtractor, Failed as Failed
from .reader import GraphReader as GraphReader, graph_reader as graph_reader
from .state import Budget as Budget
from .testing import ModelCall as ModelCall, ScriptedChatModel as ScriptedChatModel
from .tool_answers import ToolLimits as ToolLimits
from .tools import graph_tools as graph_tools
from .typed_graph import (
    ExtractedGraph as ExtractedGraph,
    Rejection as Rejection,
    TypedGraphExtractor as TypedGraphExtractor,
)
