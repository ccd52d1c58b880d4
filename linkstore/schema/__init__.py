"""Schemas: types of documents and the relations between them, and how a store uses both."""

from linkstore.schema.graph import Reach, SchemaReport, Standing, TypedGraph
from linkstore.schema.model import Mode, Problem, Relation, Schema

__all__ = ["Mode", "Problem", "Reach", "Relation", "Schema", "SchemaReport", "Standing", "TypedGraph"]
