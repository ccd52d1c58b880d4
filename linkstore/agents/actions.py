"""The structured outputs of the model: what it can decide at each step of a reading."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from linkstore.agents.facts import is_text

LONGEST: Final = 10_000
"""Characters of a text. A longer one is malformed: all prompts that follow would carry it."""
_NOTES = "What this adds to the notebook, with the ids in brackets that it comes from; empty if nothing."
_WHY = "Why, in one sentence."


def _without_defaults(schema: dict[str, Any]) -> None:
    """Leave defaults out of a JSON schema: strict structured output of some providers refuses them."""
    for field in schema.get("properties", {}).values():
        field.pop("default", None)


class Action(BaseModel):
    """Structured output of one step.

    A text of more than 10,000 characters is malformed, and one with a NUL character or a lone surrogate.
    """

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    @field_validator("*")
    @classmethod
    def _check_text(cls, value: object) -> object:
        if isinstance(value, str) and len(value) > LONGEST:
            raise ValueError(f"a text has {len(value):,} characters; write at most {LONGEST:,}")
        if isinstance(value, str) and not is_text(value):
            raise ValueError("a text has a NUL character or a lone surrogate")
        return value


class RationalPlan(Action):
    """How to answer the question, step by step."""

    plan: str = Field(description="The steps to the answer, and the key information that each one needs.")


class ScoredElement(Action):
    """A key element and how much it promises."""

    key_element: str = Field(description="Exactly as it is listed.")
    score: int = Field(ge=0, le=100, description="From 0, unrelated, to 100, surely needed.")


class InitialElements(Action):
    """The key elements to start from."""

    elements: list[ScoredElement] = Field(description="The best first; at least 10 if so many are listed.")


class FactsAction(Action):
    """The next action after reading the facts of a key element."""

    notes: str = Field(default="", description=_NOTES)
    reason: str = Field(default="", description=_WHY)
    action: Literal["read_chunk", "stop_and_read_neighbor"] = Field(
        description="read_chunk: read passages that the facts come from;"
        " stop_and_read_neighbor: no fact helps, go on to neighbours."
    )
    chunk_ids: list[str] = Field(default_factory=list, description="For read_chunk: ids, the best first.")


class ChunkAction(Action):
    """The next action after reading a passage."""

    notes: str = Field(default="", description=_NOTES)
    reason: str = Field(default="", description=_WHY)
    action: Literal[
        "search_more", "read_previous_chunk", "read_subsequent_chunk", "read_neighbors", "termination"
    ] = Field(
        description="search_more: read the next passage in the queue, or search;"
        " read_previous_chunk, read_subsequent_chunk: the one before or after on its page;"
        " read_neighbors: see what it links to;"
        " termination: the notebook answers the question."
    )
    query: str = Field(default="", description="For search_more: what to search for; empty, the question.")


class NeighbourAction(Action):
    """The neighbours to continue with."""

    reason: str = Field(default="", description=_WHY)
    action: Literal["read_neighbor_node", "read_chunk", "termination"] = Field(
        description="read_neighbor_node: explore a key element; read_chunk: read linked passages;"
        " termination: none of them helps."
    )
    key_element: str = Field(default="", description="For read_neighbor_node: exactly as it is listed.")
    chunk_ids: list[str] = Field(default_factory=list, description="For read_chunk: ids, the best first.")


class SearchAction(Action):
    """The results of a search to read."""

    reason: str = Field(default="", description=_WHY)
    action: Literal["read_chunk", "termination"] = Field(
        description="read_chunk: read passages; termination: none of them helps."
    )
    chunk_ids: list[str] = Field(default_factory=list, description="For read_chunk: ids, the best first.")


class CitedStatement(Action):
    """A sentence of the answer, and what it rests on."""

    text: str = Field(description="One or two sentences.")
    chunk_ids: list[str] = Field(description="Ids of the passages that say so; at least one.")


class FinalAnswer(Action):
    """The answer to the question."""

    analysis: str = Field(default="", description="How the notes answer the question, or what is missing.")
    in_sources: bool = Field(description="False if what was read does not answer the question.")
    statements: list[CitedStatement] = Field(
        default_factory=list, description="The answer, the direct answer first; empty if not in the sources."
    )
