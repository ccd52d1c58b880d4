"""Names of speakers: found at the beginning of turns, and left out of what a question is compared by."""

import pytest
from internals import find_named_speakers, read_speaker, remove_names

from linkstore import LinkStore
from linkstore.memory import ConversationMemory


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("Ann: I have moved to Oslo.", "Ann"),
        ("Mary Ann O'Neil: hello", "Mary Ann O'Neil"),
        ("\u00c9va: szia", "\u00c9va"),
        ("Анна Иванова: привет", "Анна Иванова"),
        ("王芳\uff1a我搬到奥斯陆了。", "王芳"),
        ("王芳: 我搬到奥斯陆了。", "王芳"),
        ("田中さん\uff1a京都に引っ越しました。", "田中さん"),
        ("ジョン・スミス\uff1aはい", "ジョン・スミス"),
        ("ليلى: انتقلت إلى أوسلو", "ليلى"),
        ("प्रिया शर्मा: मैं ओस्लो चली गई", "प्रिया शर्मा"),
        ("王芳:没有空格", None),
        ("我想说的是\uff0c这个很好\uff1a是的", None),
        ("هذا هو جوابي على السؤال: نعم", None),
        ("Ответ на вопрос: да", None),
        ("Answer to it: yes", None),
        ("ann: hello", None),
        ("I like it: very much", None),
        ("https://example.org: a link", None),
        ("Ann:hello", None),
        ("12:30 is fine", None),
        ("", None),
    ],
)
def test_a_speaker_is_the_name_before_a_colon_at_the_beginning(query, speaker):
    assert read_speaker(query) == speaker


@pytest.mark.parametrize(
    ("question", "names", "rest"),
    [
        ("What did Ann\u2019s sister tell Ann?", ["Ann"], "What did sister tell ?"),
        ("Does Annika know Ann-Marie?", ["Ann"], "Does Annika know Ann-Marie?"),
        ("Who is Ann?", ["Ann"], "Who is Ann?"),
        ("What  is new?", [], "What  is new?"),
    ],
)
def test_a_question_without_names_still_says_something(question, names, rest):
    assert remove_names(question, names) == rest


def test_only_the_names_of_those_who_speak_are_taken_for_speakers():
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        for query in ("Ann: Shall we go to Oslo?", "Bob: Yes, with Carol.", "Ann: Carol is in Oslo."):
            memory.add("chat", query)
        plan = find_named_speakers("Did Ann or Bob meet Carol in Oslo? And Zoe?", "/")
        assert store.backend.run(store.backend.answer(plan)) == ["Ann", "Bob"]


def test_words_without_a_capital_take_the_place_of_no_name_in_any_script():
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        memory.add("chat", "Анна: Я живу в Осло.")
        plan = find_named_speakers("Куда недавно вместе нашей семьёй переехала Анна?", "/")
        assert store.backend.run(store.backend.answer(plan)) == ["Анна"]


@pytest.mark.parametrize(
    ("said", "question", "named"),
    [
        (("王芳\uff1a我搬到奥斯陆了。", "李明\uff1a我住在北京。"), "王芳什么时候搬到奥斯陆\uff1f", "王芳"),
        (("田中\uff1a京都に引っ越しました。", "鈴木\uff1a東京にいます。"), "鈴木はどこにいますか", "鈴木"),
        (("ليلى: انتقلت إلى أوسلو", "علي: أعيش في القاهرة"), "أين تعيش ليلى الآن", "ليلى"),
        (("प्रिया: मैं ओस्लो चली गई", "रवि: मैं दिल्ली में हूँ"), "प्रिया अब कहाँ रहती है", "प्रिया"),
    ],
)
def test_speakers_are_found_in_questions_in_scripts_without_capitals(said, question, named):
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        for query in said * 10:
            memory.add("chat", query)
        plan = find_named_speakers(question, "/")
        assert store.backend.run(store.backend.answer(plan)) == [named]
        rest = remove_names(question, [named])
        assert named not in rest
        assert len(rest) > 3


def test_part_of_an_arabic_word_is_not_the_name_of_a_speaker():
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        memory.add("chat", "علي: أعيش في القاهرة")
        plan = find_named_speakers("ماذا عليه أن يفعل", "/")
        assert store.backend.run(store.backend.answer(plan)) == []
