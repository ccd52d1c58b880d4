"""Schemas: types of documents, the relations between them, and what a store holds of both."""

from linkstore.schema.graph import Reach, SchemaReport, Standing, TypedGraph
from linkstore.schema.model import Mode, Problem, Relation, Schema

__all__ = ["Mode", "Problem", "Reach", "Relation", "Schema", "SchemaReport", "Standing", "TypedGraph"]
