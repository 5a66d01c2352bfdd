"""The five signals: the index against a plain reading of the formulas, the seed's cases, and what expands."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass

import pytest

from memdir.retrieval.agents import ranking, scoring
from memdir.retrieval.agents.common_words import EVERYDAY
from memdir.retrieval.agents.expansion import EXPANSIONS, expand
from memdir.retrieval.agents.postings import DAY_MS, Table
from memdir.retrieval.agents.ranking import FLOOR, AgentQuery, SignalWeights, search
from memdir.retrieval.agents.relevance import is_telling
from memdir.retrieval.agents.similar import similarity
from memdir.retrieval.agents.spelling import MENDED_MAX, mended
from memdir.retrieval.agents.stems import stem
from memdir.retrieval.agents.terms import LONG_WORDS, asked, counted, is_stop_word, tag_key, words
from memdir.store.agents.feed import Indexed

NOW_MS = 1_760_000_000_000


def memory(number: int, content: str, **fields: object) -> Indexed:
    """A memory of today without tags and project."""
    given = {"tags": (), "project": None, "access_count": 0, "created_at_ms": NOW_MS} | fields
    return Indexed(number=number, content=content, **given)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Plain:
    """One memory, scored by hand."""

    number: int
    score: float
    bm25: float


def plainly(memories: list[Indexed], query: AgentQuery) -> list[Plain]:
    """Every memory scored by the seed's formulas, one after the other, in plain Python."""
    texts = {one.number: words(one.content) + [word for tag in one.tags for word in words(tag)] for one in memories}
    counts = {number: Counter(stem(word) for word in text if not is_stop_word(word)) for number, text in texts.items()}
    total, mean = len(memories), sum(map(len, texts.values())) / max(1, len(memories))
    holding = Counter(one for count in counts.values() for one in count)
    stems = [one for word in mended(asked(query.text, query.tags), holding.__getitem__) for one in word.stems]
    bm25 = {}
    for number, count in counts.items():
        bm25[number] = 0.0
        for one in sorted(stems, key=lambda stem: (holding[stem], stem)):
            if count[one]:
                idf = math.log((total - holding[one] + 0.5) / (holding[one] + 0.5) + 1)
                length = 1.2 * (1 - 0.75 + 0.75 * len(texts[number]) / mean)
                bm25[number] += idf * (count[one] * 2.2 / (count[one] + length))
    allowed = [
        one
        for one in memories
        if bm25[one.number] > 0
        and not (query.only_project and query.project not in (None, one.project))
        and not (query.only_tags and query.tags and not {*map(tag_key, query.tags)} & {*map(tag_key, one.tags)})
    ]
    if not allowed:
        return []
    best, most = max(bm25[one.number] for one in allowed), max(one.access_count for one in memories)
    known = {tag_key(tag) for one in memories for tag in one.tags}
    said = words(query.text)
    runs = {" ".join(said[at : at + size]) for size in range(1, 5) for at in range(len(said) - size + 1)}
    tags = {*map(tag_key, query.tags)} | (runs & known)
    weights, found = query.weights, []
    for one in allowed:
        own = {*map(tag_key, one.tags)}
        age_days = max(0.0, query.now_ms / DAY_MS - one.created_at_ms / DAY_MS)
        score = weights.bm25 * (bm25[one.number] / best)
        score += weights.recency * math.exp(-weights.decay_per_day * age_days)
        score += weights.frequency * (math.log1p(one.access_count) / math.log1p(most) if most else 0.0)
        score += weights.tags * (len(tags & own) / len(tags | own) if tags | own else 0.0)
        score += weights.project * (query.project is not None and one.project == query.project)
        found.append(Plain(number=one.number, score=score, bm25=bm25[one.number] / best))
    return sorted(found, key=lambda one: (-one.score, one.number))


_WORDS = """
auth authentication login database db config deploy deployment cache caching queue token user rotate zebra yak docker
pipeline redis the is not how error message billing payment kubernetes bug fix template mail größe naïve 検索 機能
"""
WORDS = _WORDS.split()
TAGS = ("auth", "bug-fix", "Bug Fix", "backend", "db", "größe")


def drawn(rng: random.Random, number: int) -> Indexed:
    return memory(
        number,
        " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 30))),
        tags=tuple(dict.fromkeys(rng.choice(TAGS) for _ in range(rng.randint(0, 3)))),
        project=rng.choice((None, "api", "web", "shop")),
        access_count=rng.choice((0, 0, 1, 7, 90)),
        created_at_ms=NOW_MS - rng.randint(-2, 400) * 43_200_000,
    )


def asked_at_random(rng: random.Random) -> AgentQuery:
    own = SignalWeights(bm25=0.3, recency=0.4, frequency=0.1, tags=0.1, project=0.1, decay_per_day=0.05)
    return AgentQuery(
        text=" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 6))),
        now_ms=NOW_MS,
        project=rng.choice((None, "api", "elsewhere")),
        tags=tuple(rng.choice(TAGS) for _ in range(rng.randint(0, 2))),
        only_project=rng.random() < 0.15,
        only_tags=rng.random() < 0.15,
        limit=10,
        threshold=rng.choice((0.0, 0.0, None)),
        weights=rng.choice((SignalWeights(), SignalWeights(), own)),
    )


def agree(table: Table, memories: list[Indexed], query: AgentQuery) -> None:
    """The index and the plain reading say the same."""
    found = search(table, query)
    wanted = plainly(memories, query)
    if query.threshold is None:
        if not found:  # nothing covers the question: told by another test
            return
        wanted = [one for one in wanted if one.bm25 >= FLOOR]
    wanted = wanted[: query.limit]
    assert [one.number for one in found] == [one.number for one in wanted], query
    assert [one.score for one in found] == pytest.approx([one.score for one in wanted], abs=1e-9)


@pytest.mark.promise("agent.exhaustive")
@pytest.mark.promise("agent.ranking")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dense", [True, False])
def test_the_ten_best_are_those_of_scoring_every_memory(seed: int, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through any edits, whichever way the index adds up."""
    monkeypatch.setattr(ranking, "_DENSE", 10**9 if dense else 0)
    monkeypatch.setattr(ranking, "_DENSE_ROWS", 32)
    monkeypatch.setattr(scoring, "PIECE_ROWS", 16)
    rng = random.Random(seed)
    table, known = Table(), dict[int, Indexed]()
    for number in range(250):
        one = drawn(rng, number)
        known[number] = one
        table.add([one])
        if rng.random() < 0.3:
            gone = rng.choice(list(known))
            del known[gone]
            table.remove(gone)
        if rng.random() < 0.3 and known:
            changed = drawn(rng, rng.choice(list(known)))
            known[changed.number] = changed
            table.add([changed])
        if number % 10 == 9 and known:
            for _ in range(3):
                agree(table, list(known.values()), asked_at_random(rng))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_the_ten_best_of_thousands_are_those_of_scoring_every_memory(seed: int) -> None:
    rng = random.Random(1000 + seed)
    memories = [drawn(rng, number) for number in range(4000)]
    table = Table()
    table.add(memories)
    for one in rng.sample(memories, 300):
        table.remove(one.number)
    left = [one for one in memories if one.number in table.row_of]
    for _ in range(10):
        agree(table, left, asked_at_random(rng))


def test_an_error_in_a_search_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table()
    table.add([memory(1, "one redis cache"), memory(2, "two redis")])
    query = AgentQuery(text="redis cache", now_ms=NOW_MS)
    before = search(table, query)

    def broken(*_: object) -> bool:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(ranking._Search, "_covers", broken)
        with pytest.raises(ZeroDivisionError):
            search(table, query)
    table.add([memory(3, "three")])
    table.remove(3)
    assert [one.number for one in search(table, query)] == [one.number for one in before]


@pytest.mark.promise("agent.expansion")
def test_abbreviations_expand_both_ways_and_words_are_stemmed() -> None:
    assert 50 <= len(EXPANSIONS) <= 200
    assert all(word in expand(other) for word, others in EXPANSIONS.items() for other in others)
    assert set(expand("auth")) == {"auth", "authentication", "login"}
    assert {"login", "auth", "authentication", "signin"} <= set(expand("login"))
    assert set(expand("database")) == {"database", "db"}
    assert expand("databases") == ("databases",), "only exactly the word"
    assert {stem(word) for word in ("authenticating", "authentication", "authenticated")} == {"authent"}
    assert [one.stems[0] for one in asked("How does authentication work?")] == ["authent", "work"]
    table = Table()
    table.add([memory(1, "The database holds the schema"), memory(2, "Signin goes through Okta")])
    assert [one.number for one in search(table, AgentQuery(text="db", now_ms=NOW_MS))] == [1]
    assert [one.number for one in search(table, AgentQuery(text="login", now_ms=NOW_MS))] == [2]
    assert [one.number for one in search(table, AgentQuery(text="how do they log in?", now_ms=NOW_MS))] == [2]
    assert [one.number for one in search(table, AgentQuery(text="autentication", now_ms=NOW_MS))] == []
    table.add([memory(3, "Auth uses JWT")])
    assert [one.number for one in search(table, AgentQuery(text="autentication", now_ms=NOW_MS))] == [3]


def test_what_was_asked_about_is_not_here_and_nothing_is_answered() -> None:
    table = Table()
    table.add([memory(number, f"The config of service {number} is read at start") for number in range(20)])
    assert search(table, AgentQuery(text="kubernetes helm terraform", now_ms=NOW_MS)) == []
    assert search(table, AgentQuery(text="kubernetes helm config", now_ms=NOW_MS)) == []
    assert search(table, AgentQuery(text="kubernetes helm config", now_ms=NOW_MS, threshold=0.0)) != []
    assert search(table, AgentQuery(text="the of and", now_ms=NOW_MS)) == []


def found(table: Table, text: str) -> list[int]:
    """Numbers, best first."""
    return [one.number for one in search(table, AgentQuery(text=text, now_ms=NOW_MS))]


@pytest.fixture(scope="module")
def notes() -> Table:
    table = Table()
    table.add(
        [
            memory(1, "Password hashing: decided on argon2id over scrypt, because OWASP recommends it"),
            memory(2, "Image upload goes to presigned S3 URLs", tags=("media",)),
            memory(3, "Reports convert each timezone with getLocalOffset before they are summed"),
            memory(4, "The webhook retries eight times; customers ask for a longer timeout"),
            memory(5, "Redis caches the product list for an hour"),
            memory(6, "The nightly backup of the database takes an hour"),
            memory(7, "Hashes of commits stand in the footer"),
        ]
    )
    return table


@pytest.mark.parametrize(
    "text",
    [
        "kafka partitions",
        "cassandra compaction retries",
        "which command runs kafka for customers",
        "the terraform backup of a snowflake warehouse",
        "write a haiku about autumn leaves",
        "how many days until Christmas",
        "does the unicorn take an hour",
    ],
)
def test_a_common_word_or_two_are_no_answer(notes: Table, text: str) -> None:
    assert found(notes, text) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("please have another look at how we do the password hashing, will you?", 1),
        ("refactor the image upload, and mind what I told you about it", 2),
        ("why again did we want argon2id", 1),
        ("is there anything about redis", 5),
    ],
)
def test_what_people_say_around_a_question_does_not_hide_what_it_is_about(notes: Table, text: str, number: int) -> None:
    assert found(notes, text)[0] == number


CHAT = (
    "Good morning! I had a long weekend and I am still catching up with everything. My colleague from the other office called "
    "me yesterday evening, and we talked for a while about what comes next this quarter. The train was late again, so I missed "
    "half of the meeting anyway. {} Somebody from marketing keeps asking when all of this will be ready; I do not know what to "
    "answer. I would like us to go slowly, step by step, and talk about it before you touch anything. Maybe you notice "
    "something that I did not. Please keep your answers short, I read them on my phone most of the time. By the way, lunch was "
    "great, thanks for the recommendation. Let me know if anything is unclear, I am around until six. We have about three days "
    "left for it, maybe four when nothing else happens, and I promised an answer to our boss before the end of the week."
)


@pytest.mark.promise("agent.long-prompt")
def test_one_sentence_of_a_long_prompt_finds_its_memory_and_chatter_alone_finds_nothing(notes: Table) -> None:
    prompt = CHAT.format("Could you change the image upload so that it works on slow phones?")
    assert len(prompt.split()) > 150
    assert found(notes, prompt)[:1] == [2]
    assert found(notes, CHAT.format("")) == []
    assert found(notes, CHAT.format("Could you explain zookeeper quorums to me?")) == []


def test_a_long_question_is_looked_for_without_everyday_words_and_a_short_one_with_them() -> None:
    assert [one.word for one in asked("please run the thing")] == ["please", "run", "thing"]
    assert not is_telling(asked("thanks, that looks good, please continue"))
    assert is_telling(asked("please continue with the parser"))
    long = asked(CHAT.format("Fix the parser. Then run it."))
    assert {"parser", "marketing"} <= {one.word for one in long}
    assert not {"please", "run", "talk"} & {one.word for one in long}
    parser = next(one for one in long if one.word == "parser")
    assert len(parser.sentences) == 1
    only_everyday = " ".join(sorted(EVERYDAY)[: LONG_WORDS + 8])
    assert len(asked(only_everyday)) > LONG_WORDS, "nothing else is there to look for"


@pytest.mark.promise("agent.slips")
@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("pasword hashing", 1),
        ("password hashign", 1),
        ("passsword", 1),
        ("time zone of reports", 3),
        ("local offset", 3),
        ("getLocalOfset", 3),
        ("web hook retries", 4),
        ("imageupload", 2),
        ("nightly backups of the databse", 6),
    ],
)
def test_slips_and_words_written_together_or_apart_are_understood(notes: Table, text: str, number: int) -> None:
    assert found(notes, text)[0] == number


@pytest.mark.promise("agent.slips")
def test_a_word_that_some_memory_has_is_never_read_as_another() -> None:
    table = Table()
    table.add(
        [memory(1, "The cashe directory is a typo that we keep"), *(memory(at, "The cache is warm") for at in range(2, 6))]
    )
    assert found(table, "cashe") == [1]
    assert found(table, "cache") == list(range(2, 6))
    assert found(table, "cachee")[0] == 2, "of two that are a slip away the commoner one"
    assert found(table, "v2cache") == [], "names with digits are not guessed at"
    assert found(table, "cach") == list(range(2, 6)), "by its stem, which is no slip"
    assert found(table, "bache") == [], "the first letter is right"
    assert search(table, AgentQuery(text="cachee", now_ms=NOW_MS, threshold=0.0)) == [], "by the words as they stand"


def test_so_many_words_of_a_query_are_read_otherwise_and_each_once() -> None:
    known = Counter(stem(f"word{letter}ing") for letter in "bcdfghjklmnp")
    query = asked(" ".join(f"wrod{letter}ing" for letter in "bcdfghjklmnp"))
    made = mended(query, known.__getitem__)
    assert sum(known[one.stems[0]] > 0 for one in made) == MENDED_MAX
    twice = mended(asked("cache cahce"), Counter(["cach"]).__getitem__)
    assert [one.stems for one in twice] == [("cach",)]


def test_a_memory_is_as_long_as_it_is_written_and_names_are_found_by_their_parts() -> None:
    """Or BM25 by hand, over words, is another one as soon as somebody writes PostgreSQL."""
    counts, length = counted("PostgreSQL waits for pgBouncer", ("dataStore",))
    assert length == 5
    assert counts[stem("bouncer")] == counts[stem("pgbouncer")] == counts[stem("store")] == 1


def test_each_signal_alone_decides_between_equal_texts() -> None:
    text, day = "redis cache settings", 86_400_000
    better = {
        "recency": ({"created_at_ms": NOW_MS - 90 * day}, {"created_at_ms": NOW_MS - day}),
        "frequency": ({"access_count": 1}, {"access_count": 50}),
        "tags": ({"tags": ("ops",)}, {"tags": ("bug-fix",)}),
        "project": ({"project": "web"}, {"project": "api"}),
    }
    for signal, (worse, best) in better.items():
        table = Table()
        table.add([memory(1, text, **worse), memory(2, text, **best)])
        query = AgentQuery(text="redis cache", now_ms=NOW_MS, project="api", tags=("bug-fix",) if signal == "tags" else ())
        found = search(table, query)
        assert [one.number for one in found] == [2, 1], signal
        assert getattr(found[0], signal) > getattr(found[1], signal), signal
    ages = {1: 0.99, 7: 0.93, 30: 0.74, 90: 0.41}
    for days, recency in ages.items():
        table = Table()
        table.add([memory(1, text, created_at_ms=NOW_MS - days * day)])
        assert search(table, AgentQuery(text="redis", now_ms=NOW_MS))[0].recency == pytest.approx(recency, abs=0.005)


def test_two_statements_that_differ_in_a_number_or_a_no_are_two() -> None:
    base = "The gateway listens on port 8080 and never logs the bodies of requests"
    assert similarity(base, base.replace("gateway", "GATEWAY")) == 1.0
    assert similarity(base, base.replace("8080", "8081")) == 0.0
    assert similarity(base, base.replace("never ", "")) == 0.0
    assert similarity(base, base.replace("gateway", "proxy")) == 0.0
    assert similarity(base, base + ", it is said") < 1.0
