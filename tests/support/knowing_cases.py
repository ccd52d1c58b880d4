"""What a memory knows of what was meant: entities, facts that give way, notes; on any engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from scripted_model import ScriptedChatModel

from linkstore import LinkStore
from linkstore.context import ContextCompiler
from linkstore.errors import ArgumentError, DocumentError, ExtractionError, StrategyError
from linkstore.memory import ConversationMemory, SessionKey
from linkstore.memory.distil import DistilledNote, DistilledNotes

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
ANN = SessionKey(user_id="ann", run_id="monday")


def texts(turns) -> list[str]:
    return [turn.query for turn in turns]


class KnowingCases:
    """Each test gets an empty ``store``."""

    @pytest.fixture
    def memory(self, store):
        with ConversationMemory(store) as memory:
            yield memory

    def talk_of_titan(self, memory):
        memory.add("chat", "What is Project Titan?", "Project Titan is the new cluster. It has 40 machines.")
        memory.add("chat", "How does it scale?", "It adds machines at night, when power is cheap.")
        memory.add("chat", "How much does that cost us?", "About 4,000 euros a month, with support.")
        memory.add("chat", "Which wine goes with fish?", "A dry white wine from the Loire.")

    def test_a_turn_that_refers_to_what_was_said_has_what_it_means(self, memory):
        self.talk_of_titan(memory)
        *first, fourth = memory.turns("chat")
        assert [turn.focus for turn in first] == [("Project Titan",)] * 3
        assert all("Project Titan" in turn.entities for turn in first)
        assert "Project Titan" not in (*fourth.entities, *fourth.focus)
        assert memory.update(first[1].id, response="It adds machines.").focus == ("Project Titan",)

    def test_a_turn_has_the_entities_of_what_it_is_said_to_mean(self, memory):
        turn = memory.add("chat", "How does it scale?", meaning="How does Project Titan scale?")
        assert (turn.entities, turn.focus) == (("Project Titan",), ("Project Titan",))

    def test_a_turn_is_found_by_the_name_before_it(self, memory):
        self.talk_of_titan(memory)
        memory.add("chat", "How does a fish breathe?", "By gills.")
        found = memory.search("chat", "Project Titan scale", k=2)
        assert texts(turn for turn, _ in found) == ["What is Project Titan?", "How does it scale?"]

    def test_an_entity_is_forgotten_with_all_that_was_about_it_and_says_what_went(self, memory, store):
        self.talk_of_titan(memory)
        memory.add("other", "Who runs Titan?", "Nobody knows.")
        ids = [turn.id for turn in memory.turns("chat")]
        shown = memory.forget(entity="Project Titan", preview=True)
        assert len(memory.turns("chat")) == 4, "a preview erases nothing"
        gone = memory.forget(entity="Project Titan")
        assert dict(shown.turns) == dict(gone.turns) == dict.fromkeys(ids[:3], "meant")
        assert texts(memory.turns("chat"))[-1] == "Which wine goes with fish?"
        assert len(memory.turns("other")) == 1, "another session does not name it in full"
        left = store.backend.run(store.backend.scan(None, 100))
        assert not [one for one in left if "Project Titan" in f"{one.text} {one.metadata}"]

    def test_a_part_of_a_name_stands_for_it_in_a_session_that_names_it(self, memory):
        memory.add("chat", "Joanna Kowalczyk was on call.", "Noted.")
        memory.add("chat", "When did Joanna raise the limit?", "At 02:31.")
        memory.add("other", "Joanna sings.", "Nice.")
        assert len(memory.forget(entity="Joanna Kowalczyk")) == 2
        assert len(memory.turns("other")) == 1

    def test_nothing_is_forgotten_for_its_place_in_a_conversation(self, memory):
        memory.add("chat", "We bought from ACME GmbH.", "Ok.")
        memory.add("chat", "ACME's lawyer called.", "Hm.")
        memory.add("chat", "I like jazz.", "Me too.")
        memory.add("chat", "And what is the capital of Peru?", "Lima.")
        gone = memory.forget("chat", entity="ACME GmbH")
        assert len(gone) == 2
        assert texts(memory.turns("chat")) == ["I like jazz.", "And what is the capital of Peru?"]

    def test_entities_of_an_own_finder_are_used(self, store):
        with ConversationMemory(store, entities=lambda text: ["Seal"] if "seal" in text else []) as memory:
            assert memory.add("chat", "Do seals sing?", "Some do.").entities == ("Seal",)
            assert memory.recall("chat", "What of seals?").entities == ("Seal",)

    def test_a_fact_gives_way_to_a_newer_one(self, memory):
        old = memory.add("chat", "I live in Bergen.", "Bergen is lovely.", time=START)
        memory.add("chat", "What is a good soup?", "Fish soup.", time=START + timedelta(days=1))
        new = memory.add("chat", "I moved to Oslo.", "Enjoy!", time=START + timedelta(days=2))
        assert new.supersedes == (old.id,)
        found = memory.recall("chat", "Where do I live?")
        assert "I live in Bergen." not in [*texts(found.turns), *texts(found.recent)]
        assert found.turns[0].id == new.id
        assert "Bergen" not in found.prompt
        assert "[2026-03-04 09:00, since then] User: I moved to Oslo." in found.prompt

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("I live in Bergen and I need a dentist", "btw I moved to Helsinki last week"),
            ("I live in Bergen.", "oh hey, I've just moved to Rome"),
            ("I live in Bergen.", "We live in a flat, and I now live in Oslo."),
            ("We live in Bergen.", "We've moved to Voss, to a house by the lake."),
            ("my budget is 1800", "actually my budget is 1500"),
            ("her teacher is Mrs. Keller", "sorry, her teacher is Mr. Brandt."),
        ],
    )
    def test_facts_give_way_as_people_type_them(self, memory, before, after):
        old = memory.add("chat", before, "Ok.")
        assert memory.add("chat", after, "Ok.").supersedes == (old.id,)

    def test_what_was_so_is_known_as_of_a_time(self, memory):
        memory.add("chat", "My phone number is 555-0134.", "Saved.", time=START)
        memory.add("chat", "My phone number is 555-0199 now.", "Updated.", time=START + timedelta(days=2))
        before = memory.recall("chat", "What is my phone number?", as_of=START + timedelta(days=1))
        assert texts(before.turns) == ["My phone number is 555-0134."]
        assert "0199" not in before.prompt
        after = memory.recall("chat", "What is my phone number?", as_of=START + timedelta(days=3))
        assert texts(after.turns) == ["My phone number is 555-0199 now."]

    def test_a_turn_that_says_more_stays_and_says_until_when(self, memory):
        memory.add("chat", "I live in Bergen. I keep bees on the roof.", "Nice.", time=START)
        memory.add("chat", "I moved to Oslo.", "Enjoy!", time=START + timedelta(days=2))
        (bees,) = [turn for turn in memory.recall("chat", "What do I keep?").turns if "bees" in turn.query]
        assert bees.until == START + timedelta(days=2)
        assert "until 2026-03-04" in memory.recall("chat", "What do I keep?").prompt

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("I have a dog called Rex.", "I have a cat called Tom."),
            ("I like jazz.", "I like techno."),
            ("I'm a nurse.", "I now have a new dog."),
            ("I work at the post office.", "also I work at the zoo"),
            ("My brother lives in Rome.", "My sister lives in Paris."),
            ("The meeting is on Tuesday.", "The meeting is at 10:00."),
            ("Is my phone number 555?", "Is my phone number 556?"),
            ("Paris is in France.", "Paris is the capital of France."),
            ("We live in Berlin.", "We moved to Postgres."),
            ("I live in Porto.", "I moved to the platform team."),
            ("We live in Brno.", "We moved to a four-day week."),
            ("I play chess.", "I don't play chess any more."),
            ("I use Vim.", "I use an e-bike now."),
            ("I switched to Colemak.", "I switched to decaf."),
            ("I'm staying positive.", "Ann said: I'm staying hopeful."),
            ("I'm working on a script.", "I'm working on a new project, and it's hard."),
            ("So, this is Max.", "Well, this is where I practise."),
        ],
    )
    def test_facts_that_stand_beside_each_other_stay(self, memory, one, other):
        memory.add("chat", one, "Ok.")
        assert memory.add("chat", other, "Ok.").supersedes == ()
        assert set(texts(memory.recall("chat", f"{one} {other}").turns)) == {one, other}

    def test_facts_give_way_across_the_sessions_of_a_user_and_not_of_others(self, memory):
        memory.add(ANN, "I live in Bergen.", time=START)
        memory.add(SessionKey(user_id="bob", run_id="monday"), "I live in Bergen.", time=START)
        memory.add("stranger", "I live in Bergen.", time=START)
        moved = memory.add(SessionKey(user_id="ann", run_id="friday"), "I live in Oslo.")
        assert len(moved.supersedes) == 1
        asked = SessionKey(user_id="ann", run_id="today")
        assert texts(memory.recall(asked, "Where do I live?", everywhere=True).turns) == ["I live in Oslo."]
        assert memory.recall("stranger", "Where do I live?").turns[0].query == "I live in Bergen."

    def test_a_correction_that_is_forgotten_makes_the_old_fact_hold_again(self, memory):
        memory.add("chat", "I live in Bergen.", time=START)
        moved = memory.add("chat", "I moved to Oslo.", time=START + timedelta(days=1))
        memory.delete([moved.id])
        assert texts(memory.recall("chat", "Where do I live?").turns) == ["I live in Bergen."]

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("Ann: My car is a red Panda.", "Bob: My car is a blue Fabia."),
            (
                "They are so awesome, with bright colors.",
                "Here's a picture. They are really happy today, not sad.",
            ),
            (
                "Things have been hectic. I just opened a shop.",
                "Since I lost my job, things have been tough.",
            ),
            ("Losing my job was hard.", "Losing my job was tough but it gave me the push I needed."),
        ],
    )
    def test_what_others_say_and_what_is_said_of_nothing_in_particular_takes_no_place(
        self, memory, before, after
    ):
        memory.add("chat", before, "Ok.")
        assert memory.add("chat", after, "Ok.").supersedes == ()

    def test_what_is_said_later_of_the_same_is_read_first(self, memory):
        memory.add("chat", "The launch is planned for May.", "Noted.")
        memory.add("chat", "Which wine goes with fish?", "A dry white wine.")
        memory.add("chat", "We had to push the launch to July.", "Ok.")
        found = [turn.query for turn in memory.recall("chat", "When is the launch?").turns]
        assert found[:2] == ["We had to push the launch to July.", "The launch is planned for May."]

    def test_an_application_says_what_a_turn_supersedes(self, memory):
        old = memory.add("chat", "The blue one, please.", "Ok.")
        memory.add("chat", "No, rather green.", "Green it is.", supersedes=[old.id])
        assert old.id not in [turn.id for turn in memory.recall("chat", "blue one please").turns]

    def test_bare_words_mean_what_the_conversation_is_about(self, store):
        with LinkStore() as knowledge:
            knowledge.add_texts(
                [
                    "Apple makes the iPhone, a phone with a touch screen, and the Mac.",
                    "An apple is a fruit; sweet and sour sorts are baked in pies and cakes.",
                    "Pears are fruit.",
                ],
                ids=["phone", "fruit", "pear"],
            )
            assert knowledge.search("apple")[0].document.id == "phone"
            with ConversationMemory(store, knowledge) as memory:
                memory.add("pie", "How do I bake a pie?", "Make a crust of butter and flour, and bake it.")
                memory.add("buy", "Which phone should I buy?", "One with a good screen and battery is best.")
                for question in ("apple", "What about apple?"):
                    for session, meant in (("pie", "fruit"), ("buy", "phone")):
                        assert memory.recall(session, question).chunks[0].document.id == meant

    def test_nothing_is_stored_but_sessions_turns_and_notes(self, memory, store):
        self.talk_of_titan(memory)
        memory.remember("chat", "Titan is red.")
        kinds = [one.metadata["type"] for one in store.backend.run(store.backend.scan(None, 100))]
        assert sorted(kinds) == ["note", "session", *["turn"] * 4]

    def test_messages_with_roles_become_turns(self, memory):
        said = [
            SystemMessage("Be kind."),
            HumanMessage("Hello!", id="m1"),
            AIMessage("Hi."),
            {"role": "user", "content": "What is tea?"},
            ("assistant", "A drink."),
            ToolMessage("ignored", tool_call_id="1"),
            HumanMessage("They spoke of tea.", additional_kwargs={"lc_source": "summarization"}),
            ("user", "Thanks."),
        ]
        turns = memory.add("chat", said, metadata={"channel": "web"})
        assert [(turn.query, turn.response) for turn in turns] == [
            ("Hello!", "Hi."),
            ("What is tea?", "A drink."),
            ("Thanks.", None),
        ]
        assert memory.turns("chat") == turns
        assert turns[1].metadata == {"channel": "web"}
        memory.add("chat", said[:3])
        assert len(memory.turns("chat")) == 3, "a message with an id is stored once"

    async def test_messages_are_added_without_blocking(self, memory):
        (turn,) = await memory.aadd("chat", [("user", "What is tea?"), ("assistant", "A drink.")])
        assert await memory.aturns("chat") == [turn]

    def test_turns_are_searched_by_metadata_and_as_they_are(self, memory):
        memory.add("chat", "Tea is green.", metadata={"channel": "web"})
        memory.add("chat", "Tea is black.", metadata={"channel": "mail"})
        found = memory.search("chat", "tea", filter={"channel": "mail"})
        assert texts(turn for turn, _ in found) == ["Tea is black."]
        with pytest.raises(DocumentError, match="must not have the keys query, which a memory writes"):
            memory.add("chat", "Tea.", metadata={"query": 1})

    def test_one_turn_is_updated_and_deleted(self, memory):
        turns = [memory.add("chat", f"My dog is {name}.", "Ok.") for name in ("Rex", "Max", "Bo")]
        changed = memory.update(turns[1].id, query="My cat is Tom.", metadata={"edited": True})
        assert (changed.id, changed.time, changed.response) == (turns[1].id, turns[1].time, "Ok.")
        assert [turn.query for turn in memory.turns("chat")] == [
            "My dog is Rex.",
            "My cat is Tom.",
            "My dog is Bo.",
        ]
        assert memory.search("chat", "cat", k=1)[0][0].query == "My cat is Tom."
        assert dict(memory.delete([turns[0].id]).turns) == {turns[0].id: "asked"}
        assert len(memory.turns("chat")) == 2
        assert not memory.delete(["unknown"])
        with pytest.raises(DocumentError, match="no turn with the id 'unknown'"):
            memory.update("unknown", query="x")

    def test_a_user_has_a_memory_without_a_session(self, memory):
        user = SessionKey(user_id="ann")
        memory.remember(user, "Ann is allergic to nuts.")
        memory.add(ANN, "I like tea.", "Noted.")
        assert set(texts(memory.recall(user, "What of nuts and tea?").turns)) == {
            "Ann is allergic to nuts.",
            "I like tea.",
        }
        assert texts(memory.recall(ANN, "nuts?").turns) == ["I like tea."]
        assert "Ann is allergic to nuts." in texts(memory.recall(ANN, "nuts?", everywhere=True).turns)
        assert memory.recall(SessionKey(user_id="bob"), "nuts?").turns == ()
        assert memory.sessions() == [user, ANN]
        with pytest.raises(DocumentError, match="needs a run_id, a user_id or an agent_id"):
            SessionKey()

    def test_sessions_without_a_user_never_see_each_other(self, memory):
        memory.add("visitor-1", "My card number is 4242.")
        memory.add(SessionKey(run_id="visitor-1", agent_id="shop"), "My card number is 4343.")
        for asked in (SessionKey(run_id="visitor-2"), SessionKey(run_id="visitor-2", agent_id="shop")):
            assert memory.recall(asked, "card number?", everywhere=True).turns == ()

    def test_notes_are_distilled_by_a_model(self, memory, store):
        memory.add("chat", "I am Ann, and I moved to Oslo in May.", "Welcome!")
        memory.add("chat", "Always answer in Norwegian.", "Greit!")
        turns = memory.turns("chat")
        model = ScriptedChatModel(
            script=[
                DistilledNotes(
                    notes=[
                        DistilledNote(text="Ann lives in Oslo.", memory="semantic", turns=[1]),
                        DistilledNote(
                            text="Ann moved in May.", memory="episodic", turns=[1], half_life_hours=48
                        ),
                        DistilledNote(text="Answer in Norwegian.", memory="procedural", turns=[2, 9]),
                    ]
                )
            ]
        )
        lives, moved, rule = memory.distil("chat", model, pinning=True)
        assert [note.memory for note in (lives, moved, rule)] == ["semantic", "episodic", "procedural"]
        assert (lives.sources, rule.sources) == ((turns[0].id,), (turns[1].id,))
        assert "1. [" in model.calls[0].messages[1].text
        assert memory.notes("chat") == sorted([lives, moved, rule], key=lambda note: note.order)
        assert memory.turns("chat") == turns, "notes are no turns"
        assert lives.id in [turn.id for turn in memory.recall("chat", "Where does Ann live?").turns]
        compiled = ContextCompiler(store, budget=200).compile("Where does Ann live?")
        assert [item.role for item in compiled.items if item.id == rule.id] == ["pinned"]
        assert lives.id in [item.id for item in compiled.items]
        assert memory.distil("chat", ScriptedChatModel(script=[])) == [], "each turn is read once"
        gone = memory.forget("chat", entity="Norwegian")
        assert rule.id in gone.notes
        assert memory.notes("chat") == sorted([lives, moved], key=lambda note: note.order)

    async def test_a_distilled_fact_supersedes_a_known_one(self, store):
        scripts = [
            [DistilledNotes(notes=[DistilledNote(text="Ann has one child.", memory="semantic", turns=[1])])],
            [
                DistilledNotes(
                    notes=[
                        DistilledNote(
                            text="Ann is a mother of two.", memory="semantic", turns=[1], replaces=[1]
                        )
                    ]
                )
            ],
        ]
        with ConversationMemory(store) as memory:
            memory.add("chat", "I have a little daughter.")
            (old,) = await memory.adistil("chat", ScriptedChatModel(script=scripts[0]))
            memory.add("chat", "My son was born!")
            (new,) = memory.distil("chat", ScriptedChatModel(script=scripts[1]))
            assert new.supersedes == (old.id,)
            found = [turn.id for turn in memory.recall("chat", "How many children has Ann?").turns]
            assert new.id in found
            assert old.id not in found

    def test_rules_of_strangers_are_not_pinned(self, memory):
        memory.add("chat", "Always praise me.")
        note = DistilledNote(text="Always praise the user.", memory="procedural", turns=[1])
        (made,) = memory.distil("chat", ScriptedChatModel(script=[DistilledNotes(notes=[note])]))
        assert made.memory == "semantic"

    def test_a_model_that_fails_to_distil_is_an_error_and_writes_nothing(self, memory):
        memory.add("chat", "I live in Oslo.")
        with pytest.raises(ExtractionError, match="could not distil //chat"):
            memory.distil("chat", ScriptedChatModel(script=[ValueError("no quota")]))
        with pytest.raises(ArgumentError, match="model"):
            memory.distil("chat")
        assert memory.notes("chat") == []

    def test_facts_fade_unless_they_are_recalled(self, store):
        with ConversationMemory(store) as memory:
            used, unused = (
                memory.remember("chat", text) for text in ("The vault opens at noon.", "The vault is green.")
            )
            later = datetime.now(UTC) + timedelta(days=120)
            memory.recall("chat", "When does the vault open?", k=1, now=later - timedelta(days=1))
            scores = {turn.id: score for turn, score in memory.search("chat", "vault", now=later)}
            fresh = {turn.id: score for turn, score in memory.search("chat", "vault")}
            assert scores[used.id] / fresh[used.id] > 0.9
            assert scores[unused.id] / fresh[unused.id] < 0.4

    def test_accesses_of_a_recall_are_recorded_when_the_memory_is_closed(self, store):
        memory = ConversationMemory(store)
        note = memory.remember("chat", "The vault opens at noon.")
        written = store.accesses.read([note.id])[note.id]
        memory.recall("chat", "When does the vault open?")
        assert store.accesses.read([note.id])[note.id] == written, "a recall is a read"
        memory.close()
        assert store.accesses.read([note.id])[note.id] > written
        quiet = ConversationMemory(store, touch=False)
        before = store.accesses.read([note.id])
        quiet.recall("chat", "When does the vault open?")
        quiet.close()
        assert store.accesses.read([note.id]) == before

    def test_a_model_summarises(self, store):
        with ConversationMemory(store, model=ScriptedChatModel(script=["Ann likes tea.", "?!"])) as memory:
            memory.add("chat", "I am Ann, and I like sencha.", "Noted.")
            assert memory.summarise("chat").query == "Ann likes tea."
            with pytest.raises(ExtractionError, match="no summary"):
                memory.summarise("chat")
            assert len(memory.notes("chat")) == 1
        with pytest.raises(ArgumentError, match="model"):
            ConversationMemory(store).summarise("chat")

    def test_a_rewriter_takes_the_question_and_the_turns(self, store):
        seen = []

        def rewrite(question, turns):
            seen.append((question, texts(turns)))
            return "How does Kubernetes scale?"

        with ConversationMemory(store, rewriter=rewrite) as memory:
            memory.add("chat", "What is Kubernetes?")
            assert memory.recall("chat", "And scaling?").resolved == "How does Kubernetes scale?"
        assert seen == [("And scaling?", ["What is Kubernetes?"])]
        with pytest.raises(ArgumentError, match="rewriter"):
            ConversationMemory(store, rewriter="gpt")

    def test_unknown_options_are_refused(self, memory):
        for call in (
            lambda: memory.recall("chat", "what?", budgt=5),
            lambda: memory.add("chat", "what?", sorces=["x"]),
            lambda: memory.search("chat", "what?", limit=5),
        ):
            with pytest.raises(TypeError, match="has no argument"):
                call()
        with pytest.raises(StrategyError, match="k must be"):
            memory.search("chat", "what?", k=0)
