"""Of two statements of the same the newer one is read first, and of other subjects none is moved."""

from __future__ import annotations

import pytest
from internals import read_clauses

from linkstore import LinkStore
from linkstore.memory import ConversationMemory

BETWEEN = ("How do I clean suede?", "Use a soft brush.")


def recall_order(older: str, newer: str, question: str) -> str:
    """Tell which of two statements is recalled first."""
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        names = {}
        for name, text in (("older", older), ("newer", newer)):
            names[memory.add("chat", text, "Noted.").id] = name
            memory.add("chat", *BETWEEN)
        found = [names[turn.id] for turn in memory.recall("chat", question).turns if turn.id in names]
    return found[0]


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("I sleep in the wheelhouse.", "The deckhand sleeps in the forepeak now.", "Where do I sleep?"),
        ("My bees are in the orchard.", "My neighbour's bees are in the meadow now.", "Where are my bees?"),
        (
            "The kiln fires at 1240 degrees.",
            "The oven fires at 300 degrees now.",
            "At how many degrees does the kiln fire?",
        ),
        ("My left knee hurts.", "My left elbow hurts now.", "Which of my knees hurts?"),
        (
            "Our choir rehearses on Mondays.",
            "Their choir rehearses on Fridays now.",
            "When does our choir rehearse?",
        ),
        (
            "My favourite cheese is Brunost.",
            "My favourite bread is rye these days.",
            "What is my favourite cheese?",
        ),
        ("My tractor is a Fendt.", "The tractor of the mill is a Deutz now.", "Which tractor do I have?"),
        ("Ann: I work at the mint.", "Ben: I work at the museum now.", "Where does Ann work?"),
        ("I keep quails.", "I used to keep ducks.", "Which birds do I keep?"),
        ("Ich wohne in Husum.", "Mein Bruder wohnt jetzt in Celle.", "Wo wohne ich?"),
    ],
)
def test_a_statement_about_something_else_stays_behind(older: str, newer: str, question: str) -> None:
    assert recall_order(older, newer, question) == "older"


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("I sleep in the wheelhouse.", "I sleep in the forepeak now.", "Where do I sleep?"),
        ("The matinee begins at 14:30.", "We moved the matinee to 15:00.", "When does the matinee begin?"),
        (
            "The lift carries 400 kg.",
            "The inspector says the lift carries 350 kg now.",
            "How much does the lift carry?",
        ),
        (
            "My daughter studies botany.",
            "My daughter has switched, she studies geology.",
            "What does my daughter study?",
        ),
        (
            "Send the crates to Varna.",
            "Send the crates to Burgas instead.",
            "Where should the crates be sent?",
        ),
        ("Ann: I work at the mint.", "Ann: I work at the museum now.", "Where does Ann work?"),
        ("I used to keep ducks.", "I keep quails.", "Which birds do I keep?"),
        ("Ich wohne in Husum.", "Ich wohne jetzt in Celle.", "Wo wohne ich?"),
    ],
)
def test_a_newer_statement_of_the_same_is_first(older: str, newer: str, question: str) -> None:
    assert recall_order(older, newer, question) == "newer"


def test_a_question_about_former_times_leaves_the_order() -> None:
    assert (
        recall_order("I used to keep ducks.", "I keep quails.", "Which birds did I use to keep?") == "older"
    )


@pytest.mark.parametrize(
    ("text", "subjects"),
    [
        ("I think my blue boat leaks, so we moved it.", [None, "we"]),
        ("The deadline for the grant was extended.", ["deadline"]),
        ("My neighbour's old gate opens at six.", ["gate"]),
        ("Quails quarrel.", [None]),
        ("Correction: the ferry is late.", [None, "ferry"]),
    ],
)
def test_a_subject_is_read_where_it_is_sure(text: str, subjects: list[str | None]) -> None:
    read = [clause.subject and (clause.subject.head or clause.subject.owner) for clause in read_clauses(text)]
    assert read == subjects


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("J'habite à Rennes.", "J'habite maintenant à Brest.", "Où est-ce que j'habite ?"),
        ("Trabajo en Telefónica.", "Ahora trabajo en Iberia.", "¿Dónde trabajo?"),
        ("Ich fahre einen Opel.", "Ich fahre inzwischen einen Dacia.", "Welches Auto fahre ich?"),
        ("I use Emacs for writing.", "I use Helix for writing now.", "What do I use for writing?"),
    ],
)
def test_what_a_speaker_says_of_himself_is_newest_first(older: str, newer: str, question: str) -> None:
    assert recall_order(older, newer, question) == "newer"


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("I live in Dundee.", "If I win, I live in Monaco now and forever.", "Where do I live?"),
        ("I live in Dundee.", "Tom said: I live in Perth now.", "Where do I live?"),
        ("I live in Dundee.", "I don't live in Perth now.", "Where do I live?"),
        ("I work at the harbour.", "I would work at the museum if they paid more.", "Where do I work?"),
        ("I'm a baker.", "My son is a plumber now.", "What is my job?"),
        ("I study law.", '"I study medicine now", wrote my cousin.', "What do I study?"),
        ("Ich arbeite bei Bosch.", "Ich arbeite nicht bei Festo.", "Wo arbeite ich?"),
        ("Je travaille chez Renault.", "Je ne travaille pas chez Airbus.", "Où est-ce que je travaille ?"),
        ("Vivo en Cádiz.", "Mi hermana ahora vive en Málaga.", "¿Dónde vivo?"),
    ],
)
def test_what_is_supposed_quoted_denied_or_of_somebody_else_stays_behind(
    older: str, newer: str, question: str
) -> None:
    assert recall_order(older, newer, question) == "older"
