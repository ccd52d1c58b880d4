from .graph import Branch as Branch, GraphQuery as GraphQuery, Step as Step
from .linkstore import LinkStore as LinkStore
from .migration import (
    Batch as Batch,
    MigrationReport as MigrationReport,
    MigrationSource as MigrationSource,
    migrate as migrate,
)
from .retriever import LinkRetriever as LinkRetriever
from .schema import Mode as Mode, Problem as Problem, Relation as Relation, Schema as Schema
from .schema_graph import (
    Reach as Reach,
    SchemaReport as SchemaReport,
    TypeConnectivity as TypeConnectivity,
    TypedGraph as TypedGraph,
)
