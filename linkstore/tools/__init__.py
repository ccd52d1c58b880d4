"""Tools with which an agent searches a store, follows its links, and reads."""

from linkstore.tools.langchain import graph_tools
from linkstore.tools.limits import ToolLimits

__all__ = ["ToolLimits", "graph_tools"]
