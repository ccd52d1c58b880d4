# ruff: noqa: E501, RUF001
"""Acknowledgements, greetings and refusals: none becomes what a pronoun means, and none makes a recall worse."""

from itertools import cycle

import pytest

from linkstore import LinkStore
from linkstore.embeddings import get_embedding
from linkstore.memory import ConversationMemory

ANSWERS = """
    Got it.|Understood.|Done.|Will do.|Sounds good.|I see.|No problem.|My pleasure.|You're welcome!|Of course!
    Absolutely!|Congratulations!|I'll remember that.|Saved.|Hello!|Hi!|Happy to help!|Sent.|Good choice.
    Interesting!|Oh no.|Cool.|Perfect.|Ok.|OK|Noted.|Remembered.|Good to know.|Let me check.|I don't know.
    Not sure.|N/A|\N{THUMBS UP SIGN}|Sure thing!|Makes sense.|Checking...|That's right.|Awesome!|Hm.|Yep.|Sorry, I can't help with that.
    I'm afraid I don't have access to that.|As an AI model, I cannot do that.|Good morning! How can I help you today?
    Great! I have noted that down for you. Is there anything else that I can do?
    That sounds wonderful! Let me know if you would like any tips. I am happy to help.
    Verstanden.|Keine Ahnung.|Gern geschehen!|Alles klar.|Entendido.|Claro.|De nada.|Lo siento.|Bien sûr.|D'accord.
    Je ne sais pas.|Capito.|Prego!|Non lo so.|Entendi.|De acordo.|Begrepen.|Tack!|Хорошо.|Понятно.|Не знаю.|了解しました。
    わかりました。|はい|好的。|明白了。|알겠습니다.|ठीक है।|حسنا|Tamam.|Dobrze.
"""
SHORT = [one.strip() for line in ANSWERS.strip().split("\n") for one in line.split("|")]
BOUGHT = {
    "Aurora Borealis": ("telescope", "Lyra Optics"),
    "Blue Heron": ("kayak", "Nordfjord Boats"),
    "Kestrel": ("drone", "Skyline Works"),
    "Juniper": ("laptop", "Halden Computing"),
    "Mistral": ("bicycle", "Corvo Cycles"),
    "Saffron": ("oven", "Brasa Kitchens"),
}
QUESTIONS = [
    "Who made it, and how long is its warranty?",
    "How much did it cost?",
    "And the maker?",
    "Which maker builds the Quill printer?",
    "Is there also a warranty for the Onyx piano?",
]


@pytest.fixture(scope="module")
def knowledge():
    with LinkStore(get_embedding("wordllama")) as store:
        things = {**BOUGHT, "Quill": ("printer", "Inkwell Systems"), "Onyx": ("piano", "Steiner Brothers")}
        store.add_texts(
            [
                f"The {name} is a {thing} made by {maker}. It comes with a warranty and costs {len(maker)} euros."
                for name, (thing, maker) in things.items()
            ],
            ids=list(things),
        )
        store.add_texts(
            [
                f"A note on warranties, prices and makers, number {n}: who made it tells how long."
                for n in range(40)
            ]
        )
        store.add_texts([f"{one} So people say, or \u201c{one}\u201d, or {one.lower()}" for one in SHORT])
        yield store


def place(hits, id):
    ids = [hit.document.id for hit in hits]
    return ids.index(id) if id in ids else 5


def meant(question, name):
    return next((one for one in ("Quill", "Onyx") if one in question), name)


def test_there_are_short_answers_in_several_languages():
    assert len(set(SHORT)) == len(SHORT) >= 40


def test_no_short_answer_is_what_a_question_means_or_makes_its_recall_worse(knowledge):
    plain = {question: knowledge.search(question, k=5) for question in QUESTIONS}
    with LinkStore(knowledge.embeddings) as store, ConversationMemory(store, knowledge) as memory:
        for answer, name in zip(SHORT, cycle(BOUGHT), strict=False):
            memory.add(answer, f"I bought the {name}.", answer)
            for question in QUESTIONS:
                found = memory.recall(answer, question)
                assert found.resolved == question
                gold = meant(question, name)
                assert place(found.chunks, gold) <= place(plain[question], gold), (answer, question)
            assert place(memory.recall(answer, QUESTIONS[0]).chunks, name) == 0, answer


def test_what_a_question_refers_to_counts_more_than_its_own_words():
    """Sixty notes have the words of the question, and one text what was bought."""
    with LinkStore(get_embedding("wordllama")) as knowledge, LinkStore(knowledge.embeddings) as store:
        knowledge.add_texts(
            [
                f"The {name} is a {thing} made by {maker}. It comes with a warranty of {len(name)} years."
                for name, (thing, maker) in BOUGHT.items()
            ],
            ids=list(BOUGHT),
        )
        knowledge.add_texts(
            [
                f"On warranties and makers, number {n}: it depends on who made it and how long the warranty is."
                for n in range(60)
            ]
        )
        with ConversationMemory(store, knowledge) as memory:
            for name in BOUGHT:
                memory.add(name, f"I bought the {name}.", "Good choice.")
                found = memory.recall(name, "Who made it, and how long is its warranty?")
                assert found.chunks[0].document.id == name


@pytest.mark.parametrize("asked", ["Which telescope did I buy?", "who made the telescope", "Where is it?"])
def test_no_short_answer_is_a_name_even_if_one_was_asked_for(knowledge, asked):
    with LinkStore.open(":memory:") as store, ConversationMemory(store, knowledge) as memory:
        for number, answer in enumerate(SHORT):
            memory.add(f"{number}", asked, answer)
            for question in ("How much did it cost?", "When did she buy it?", "How many people live there?"):
                found = memory.recall(f"{number}", question).chunks
                assert "question" in {name for hit in found for name in hit.contributions}, answer


def test_a_question_that_goes_on_with_a_name_that_was_asked_for_is_searched_for_with_it(knowledge):
    with LinkStore.open(":memory:") as store, ConversationMemory(store, knowledge) as memory:
        memory.add("chat", "Which telescope did I buy?", "Aurora Borealis.")
        found = memory.recall("chat", "How much did it cost?")
        assert (found.resolved, found.chunks[0].document.id) == ("How much did it cost?", "Aurora Borealis")
        assert [*found.chunks[0].contributions] == ["previous answer"]
        memory.add("other", "Which telescope did I buy?", "Zorblax Prime.")
        found = memory.recall("other", "How much did it cost?")
        assert "question" in {name for hit in found.chunks for name in hit.contributions}


@pytest.mark.parametrize("remark", [("Thanks!", "You are welcome."), ("Got it.", "Is there anything else?")])
def test_after_a_remark_a_search_reads_what_was_said_before_it(knowledge, remark):
    with LinkStore.open(":memory:") as store, ConversationMemory(store, knowledge) as memory:
        memory.add("chat", "Tell me about the Mistral bicycle.", "The Mistral is a bicycle for long tours.")
        memory.add("chat", *remark)
        memory.add("chat", *remark)
        assert memory.recall("chat", "How much did it cost?").chunks[0].document.id == "Mistral"


def test_a_name_that_a_page_has_as_its_title_is_known():
    with LinkStore.open(":memory:") as store, LinkStore.open(":memory:") as knowledge:
        knowledge.add_texts(["It lies in Cumbria."], metadatas=[{"title": "Lake District"}], ids=["lakes"])
        with ConversationMemory(store, knowledge) as memory:
            memory.add("chat", "Which part of England is Knott in?", "Lake District")
            found = memory.recall("chat", "Where is it?")
        assert [*found.chunks[0].contributions] == ["previous answer"]


def test_turns_are_recalled_as_for_the_plain_question():
    """The turns of a session with acknowledgements, where only the question alone names what it asks for."""
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        for name, (thing, maker) in BOUGHT.items():
            memory.add("chat", f"My {thing} is the {name}, made by {maker}.", "Noted.")
        for answer in SHORT[::4]:
            memory.add("chat", "I see.", answer)
            for name, (thing, _) in BOUGHT.items():
                assert name in memory.recall("chat", f"And who made my {thing}?", k=1).turns[0].query
