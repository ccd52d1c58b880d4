"""Resolves references by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain_core.language_models import BaseLanguageModel

from linkstore.memory.recalled import shown_turn
from linkstore.memory.references import Resolved, depends_on_history
from linkstore.memory.requests import think
from linkstore.memory.turns import Turn
from linkstore.plans import Operation

_PROMPT: Final = """
Rewrite the last question so that it can be understood without the conversation: replace pronouns and add
what is left out. Change nothing else. Do not answer it. Give the question alone.

{conversation}

Last question: {question}
Rewritten question:"""


def rewritten(model: BaseLanguageModel[Any], question: str, recent: Sequence[Turn]) -> Operation[Resolved]:
    """Have a model rewrite the question. It stays as it is if the model gives nothing."""
    conversation = "\n".join(map(shown_turn, recent))
    answer: str = yield from think(
        model=model, prompt=_PROMPT.strip().format(conversation=conversation, question=question)
    )
    text = " ".join(answer.split()) or question
    changed = text != question
    return Resolved(text=text, depends=changed or depends_on_history(question), exact=changed)
