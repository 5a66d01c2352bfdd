"""Questions that have no answer in a memory, and whether the search says so; and whether it still shows what is there.

Four kinds: the questions of another collection, questions of general knowledge, everyday questions made from parts about things
that the memory does not mention, and words that are none. Made the same way every time. The curve from cosines to scores was
fitted on half of the questions of the collections; here the other halves are asked. The threshold was set with the memories'
shares in view, so that it is no held-out figure.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from memdir.retrieval.embed import Embedder
from memdir.retrieval.threshold import threshold_among, threshold_beside
from memdir.retrieval.types import SearchQuery
from memdir.store.text.words import stem, words
from memdir_bench.figures import Better, Figure
from memdir_bench.retrieval import handwritten
from memdir_bench.retrieval.collections import Collection, Question, Text
from memdir_bench.retrieval.corpus import memory
from memdir_bench.retrieval.fixtures import SHORT, Fixture, filled
from memdir_bench.retrieval.metrics import wilson

GOAL: Final = 0.05
"""Of the questions without an answer."""
THRESHOLDS: Final = (0.1, 0.2, 0.3, 0.4, 0.5)
"""At which the share of unrelated and of related questions is told beside the default one."""
FILES_PER_LAYOUT: Final = (1, 4)
RELATED_EVERY: Final = 6
"""Of the generated questions, which have answers."""
_MEMORY_SEED: Final = 57
MADE: Final = 100
_SEED: Final = 11

_ASKED: Final = (
    "how do I {verb} a {thing}", "what is the best way to {verb} a {thing}", "where can I buy a {thing} to {verb}",
    "why did the {person} {verb} my {thing}", "when should the {person} {verb} the {thing}", "{thing} {person} {verb}",
)  # fmt: skip
_VERBS: Final = ("knit", "bake", "paint", "pickle", "prune", "tune", "iron", "feed", "braid", "polish", "sew", "roast")
_THINGS: Final = (
    "sweater", "lasagne", "violin", "rabbit", "rose bush", "wedding cake", "sofa cover", "goldfish", "birthday card", "saddle",
    "teapot", "scarf", "guitar string", "duck", "pumpkin", "ballet shoe",
)  # fmt: skip
_PEOPLE: Final = ("midwife", "gardener", "bride", "grandmother", "baker", "singer", "neighbour", "shepherd")
_LETTERS: Final = ("bcdfgklmnprstvwz", "aeiouy")


def everyday(kept: Sequence[Text], count: int = MADE) -> list[str]:
    """Questions about home and garden, but for things of which a word stands in `kept`: those are no unrelated ones."""
    made = random.Random(_SEED)  # noqa: S311  no secret
    known = {stem(word) for text in kept for word in words(text.text)}
    things = [thing for thing in _THINGS if not any(stem(word) in known for word in words(thing))]
    return [
        made.choice(_ASKED).format(verb=made.choice(_VERBS), thing=made.choice(things), person=made.choice(_PEOPLE))
        for _ in range(count)
    ]


def nonsense(count: int = MADE) -> list[str]:
    """Words that no language has."""
    made = random.Random(_SEED)  # noqa: S311  no secret

    def word() -> str:
        return "".join(made.choice(_LETTERS[place % 2]) for place in range(made.randint(5, 9)))

    return [" ".join(word() for _ in range(made.randint(2, 5))) for _ in range(count)]


def held_out(questions: Sequence[Question]) -> Sequence[Question]:
    """The half that the curve was not fitted on."""
    return questions[1::2]


def texts(questions: Sequence[Question]) -> list[str]:
    """What is asked."""
    return [question.text for question in questions]


def run(collections: Sequence[Collection], dense: Embedder | None, say: Callable[[str], None]) -> list[Figure]:
    """A small memory written by hand and generated ones of two sizes, asked what the collections and the made kinds ask."""
    asked = [(other.name, texts(held_out(other.questions))) for other in collections]
    kept = [Text(path=path, text=text) for path, text in handwritten.FILES.items()]
    answered = [Question(name=path, text=text, gains={path: 1}) for text, path in handwritten.QUESTIONS.items()]
    say(f"unrelated: indexing {len(kept)} files …")
    with filled(kept, dense, say) as fixture:
        found = figures("handwritten", fixture, asked + made_up(kept), answered)
    for files in FILES_PER_LAYOUT:
        generated = memory(seed=_MEMORY_SEED, files_per_layout=files)
        kept = [Text(path=path, text=text) for path, text in generated.files.items()]
        say(f"unrelated: indexing {len(kept)} files …")
        related = [Question(name=one.kind, text=one.text, gains={one.path: 1}) for one in generated.questions[::RELATED_EVERY]]
        with filled(kept, dense, say) as fixture:
            found += figures(f"generated_{len(kept)}", fixture, asked + made_up(kept), related)
    return found


def made_up(kept: Sequence[Text]) -> list[tuple[str, list[str]]]:
    """The kinds that need no other collection, for a memory of the texts `kept`."""
    return [("knowledge", list(handwritten.UNRELATED)), ("everyday", everyday(kept)), ("nonsense", nonsense())]


def figures(
    name: str, fixture: Fixture, unrelated: Sequence[tuple[str, Sequence[str]]], related: Sequence[Question]
) -> list[Figure]:
    """The share of each kind of question that shows anything at the default threshold, all kinds alike, and the share of the
    related ones that show a file that answers; then both at other thresholds, for the choice there is."""
    best = {kind: [_scores(fixture, question, {})[0] for question in questions] for kind, questions in unrelated}
    both = [_scores(fixture, question.text, question.gains) for question in related]
    answered = [score for _, score in both]
    static = fixture.engine.static
    count = fixture.engine.vectors.nearest(fixture.scope, static.embed_query("x"), model=static.name, limit=1).counted
    default = threshold_among(count)
    shown = sum(score >= threshold_beside(first, count) for first, score in both)
    asked = sum(len(scores) for scores in best.values())
    made = [_share(f"{name}.shown_for_{kind}", _over(scores, default), len(scores)) for kind, scores in best.items()]
    for at, threshold in (("", default), *((f"_at_{threshold:g}", threshold) for threshold in THRESHOLDS)):
        share = sum(_over(scores, threshold) / len(scores) for scores in best.values()) / len(best)
        goal = None if at else GOAL
        made.append(_share(f"{name}.shown_for_unrelated{at}", round(share * asked), asked, goal=goal, value=share))
        if answered:
            found = _over(answered, threshold) if at else shown
            made.append(_share(f"{name}.shown_for_related{at}", found, len(answered), better="higher"))
    return made


def _scores(fixture: Fixture, text: str, gains: Mapping[str, int]) -> tuple[float, float]:
    """The best score for a text, and the best of files that answer it. 0 without a hit."""
    query = SearchQuery(text=text, scope=fixture.scope, limit=SHORT if gains else 1, lines=False, threshold=0.0)
    hits = fixture.searcher().search(query).hits
    return max((hit.score for hit in hits), default=0.0), max((hit.score for hit in hits if hit.path in gains), default=0.0)


def _over(scores: Sequence[float], threshold: float) -> int:
    return sum(score >= threshold for score in scores)


def _share(
    name: str, found: int, count: int, *, goal: float | None = None, better: Better = "lower", value: float | None = None
) -> Figure:
    return Figure(
        name=name,
        value=found / count if value is None else value,
        unit="share",
        samples=count,
        goal=goal,
        better=better,
        spread=wilson(found, count),
    )
