"""What is remembered of notes: made-up lives in wording that no rule was made for, real prose, and what must hold of every
reconciling."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.memory.claims import claim_of
from memdir.memory.formers import formers_of
from memdir.memory.profile import profile
from memdir.memory.reconcile import reconcile
from memdir_bench.memory.diaries import LANGUAGES, diary, kept, remembered
from memdir_bench.memory.documentation import FOLDER, documents
from memdir_bench.memory.judging import Store, judged
from memdir_bench.memory.made_up_lives import life

from .reading import facts, read

SENTENCES = (
    "I live in Porto.", "I moved from Porto to Lisbon.", "I live in Lisbon now.", "Ana Ruiz works at Nordlicht AG.",
    "We decided to hire a cook.", "Project Heron uses MongoDB.", "Project Heron switched from MongoDB to DuckDB.",
    "The deadline of Heron is 3 May.", "It rained.", "The deadline of Heron was moved to 9 June.", "My editor is Helix.",
    "I switched my editor from Helix to Zed.", "Should I move to Oslo?",
)  # fmt: skip
NOTES = st.lists(st.sampled_from(SENTENCES), max_size=4).map(" ".join)


@pytest.mark.promise("facts.lives")
@pytest.mark.parametrize("family", ["tuned", "held"])
def test_what_is_remembered_of_a_life_is_right_and_stands_in_its_note(family: str) -> None:
    score = judged([life(family, seed) for seed in range(12)])
    assert score.right >= 0.9 * score.extracted
    assert score.found >= 0.6 * score.stated
    assert score.unsupported == 0
    assert score.contradictions == 0
    assert score.stale == 0


@pytest.mark.promise("facts.diary")
@pytest.mark.parametrize("language", LANGUAGES)
def test_of_a_diary_what_lasts_is_remembered_and_not_the_weather(language: str) -> None:
    """`memdir bench memory` says how well its changes are followed."""
    entries = diary(language)
    score = remembered(entries)
    assert score.right >= 0.8 * score.facts
    assert score.found >= 0.5 * score.worth
    assert kept(entries).stale == 0


@pytest.mark.promise("facts.current")
def test_after_many_changes_the_profile_says_what_holds_now() -> None:
    """Of the family that rules were made for. `memdir bench memory` says how it is in other words."""
    score = judged([life("tuned", seed) for seed in range(12)])
    assert score.changed > 60
    assert score.up_to_date == score.changed
    assert score.contradictions == 0


@pytest.mark.promise("facts.when")
def test_the_order_in_which_dated_notes_arrive_matters_little() -> None:
    """A folder of notes is imported in any order. The last file that says something arrives first, and still counts."""
    in_order, shuffled = [life("tuned", seed) for seed in range(12)], [life("tuned", seed) for seed in range(12)]
    for seed, one in enumerate(shuffled):
        random.Random(seed).shuffle(one.notes)
    assert judged(in_order).up_to_date == judged(in_order).changed
    assert judged(shuffled).up_to_date >= 0.95 * judged(shuffled).changed


@pytest.mark.parametrize(
    ("notes", "now"),
    [
        (["Ana Ruiz lives in Ghent.", "Ana moved to Basel."], ["Ana moved to Basel."]),
        (["Ana lives in Ghent.", "Ana Ruiz moved to Basel."], ["Ana Ruiz moved to Basel."]),
        (
            ["Ana Ruiz lives in Ghent.", "Ana Costa lives in Graz.", "Ana moved to Basel."],
            ["Ana Ruiz lives in Ghent.", "Ana Costa lives in Graz.", "Ana moved to Basel."],
        ),
        (["Ana Ruiz lives in Ghent.", "Ana Costa moved to Graz."], ["Ana Ruiz lives in Ghent.", "Ana Costa moved to Graz."]),
    ],
)
def test_a_first_name_is_the_one_known_person_of_that_name(notes: list[str], now: list[str]) -> None:
    store = Store()
    for number, text in enumerate(notes):
        store.write(f"/memory/{number}.md", text, now_ms=number)
    assert sorted(one.candidate.text for one in store.latest()) == sorted(now)
    shown = profile(store.latest(), now_ms=9).static_texts
    assert sorted(shown) == sorted(now)


@pytest.mark.promise("facts.prose")
@pytest.mark.skipif(not FOLDER.is_dir(), reason="no documentation of Debian packages here")
@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.long)])
def test_documents_that_are_about_nobody_bring_no_facts_even_among_the_memories(every: int) -> None:
    looked_at = remembered = 0
    for path, text in documents(max_bytes=20_000, most=2000, every=every):
        looked_at += 1
        remembered += bool(facts(text, f"/memory/{path.name}"))
    limit = 0.01 * looked_at
    assert remembered <= limit + (0 if every == 1 else 2 * limit**0.5), f"{remembered} of {looked_at}"  # a sample varies


@pytest.mark.parametrize(
    "text",
    [
        "Should I move to Oslo?", "Maybe I live in Rome one day.", "If I lived in Paris I would cook.",
        '"I live in a castle", said the child.', "According to the brochure I live in a paradise.",
        "In the novel a detective moves to Vienna.", "The museum is closed on Mondays.",
        "---\ntrust: untrusted\n---\nI live in Ghent.",
    ],
)  # fmt: skip
def test_what_is_asked_supposed_quoted_or_said_by_others_is_no_fact(text: str) -> None:
    assert facts(f"{text} I work at Kestrel Labs.")[:1] in ([], ["I work at Kestrel Labs."])


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        ("I moved from Porto to Lisbon in May.", ("user", "lives in", "lisbon", "porto")),
        ("Ana Ruiz left Aurora Bank and works at Tessera now.", ("ana ruiz", "works at", "tessera", "aurora bank")),
        ("The deadline of Heron was moved to 3 March 2027.", ("heron", "due", "3 march 2027", None)),
        ("I want to live in Oslo.", None),
    ],
)
def test_a_claim_is_whose_what_which_and_which_before(text: str, claimed: tuple[str, str, str, str | None] | None) -> None:
    found = claim_of(text)
    assert (None if found is None else (found.subject, found.attribute, found.value)) == (claimed and claimed[:3])
    assert formers_of(text) == {claimed[3]} - {None} if claimed else not formers_of(text)


@pytest.mark.promise("facts.reconciled")
@given(st.lists(st.tuples(st.sampled_from(["/memory/a.md", "/memory/b.md", "/memory/c.md"]), NOTES), max_size=8))
def test_reconciling_is_idempotent_has_no_cycles_and_forgets_what_nobody_says(writes: list[tuple[str, str]]) -> None:
    store = Store()
    for number, (path, text) in enumerate(writes):
        candidates = store.write(path, text, now_ms=number)
        others = [one for one in store.latest() if one.document_id != path]
        again = reconcile(candidates, own=store.own(path), others=others)
        assert {change.action for change in again} <= {"strengthen"}, "said once more, nothing changes"
        for memory in store.memories.values():
            seen = set()
            at = memory
            while at.parent_id is not None and at.parent_id in store.memories:
                assert at.id not in seen
                seen.add(at.id)
                at = store.memories[at.parent_id]
    for path in ("/memory/a.md", "/memory/b.md", "/memory/c.md"):
        store.write(path, "", now_ms=100)
    assert store.latest() == []


@pytest.mark.promise("facts.current")
@pytest.mark.parametrize("newest_first", [False, True])
def test_of_a_journal_in_one_file_the_last_day_counts(newest_first: bool) -> None:
    days = [
        "## 2026-01-05\n\nI live in Porto. I work at Tessera. My editor is Helix.\n",
        "## 2026-03-09\n\nRain again. I left Tessera and joined Kestrel Labs.\n",
        "## 2026-05-17\n\nI moved to Lisbon. The tram was late.\n",
    ]
    found = facts("\n".join(days[::-1] if newest_first else days))
    assert sorted(found) == ["I left Tessera and joined Kestrel Labs.", "I moved to Lisbon.", "My editor is Helix."]


def test_a_sentence_of_two_claims_is_two_facts_with_their_own_places() -> None:
    text = "Hello. I live in Porto and work at Tessera as an engineer. I left Aurora Bank and joined Kestrel Labs.\n"
    found = read(text, "/memory/me.md")
    assert [(one.text, text[one.start_byte : one.end_byte]) for one in found] == [
        ("I live in Porto.", "I live in Porto"),
        ("I left Aurora Bank and joined Kestrel Labs.", "I left Aurora Bank and joined Kestrel Labs."),
    ], "the later employer holds"
    assert facts("I live in Porto and work at Tessera.") == ["I live in Porto.", "I work at Tessera."]
    assert facts("Ana Ruiz lives in Graz and speaks Dutch.") == ["Ana Ruiz lives in Graz.", "Ana Ruiz speaks Dutch."]
    assert facts("I like bread and butter.") == ["I like bread and butter."]
