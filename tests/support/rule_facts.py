"""The rules of the benchmarks, by which tests extract facts, directly or in the place of a model."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from scripted_model import ScriptedChatModel

from linkstore.agents.fact_index import ExtractedFact, ExtractedFacts

PROGRAM: Final = Path(__file__).parents[2] / "benchmarks" / "_rule_facts.py"
_RULES: Final = runpy.run_path(str(PROGRAM))
RuleExtractor: Any = _RULES["RuleExtractor"]
key_elements, pronouns_of, with_subject = (
    _RULES[name] for name in ("key_elements", "pronouns_of", "with_subject")
)
sentences, LONGEST = _RULES["sentences"], _RULES["LONGEST"]


def model_by_rules() -> ScriptedChatModel:
    """A model that extracts the facts of a passage as the rules do."""
    return ScriptedChatModel(script=_extracted)


def _extracted(messages: Sequence[BaseMessage]) -> ExtractedFacts:
    place, _, passage = str(messages[-1].text).rpartition("Passage:\n")
    first = place.partition("\n")[0]
    title = first.removeprefix("Title: ").partition(", ")[0] if first.startswith("Title: ") else ""
    facts = _RULES["facts_of"](Document(passage, metadata={"title": title}))
    return ExtractedFacts(
        facts=[ExtractedFact(fact=one.text, key_elements=[*one.key_elements]) for one in facts]
    )
