from .graph import Branch as Branch, GraphQuery as GraphQuery, Step as Step
from .linkstore import LinkStore as LinkStore
from .migration import migrate as migrate
from .retriever import LinkRetriever as LinkRetriever
from .schema import Relation as Relation, Schema as Schema
from .schema_graph import TypedGraph as TypedGraph
