"""`memdir bench memory`: made-up lives through the rules, and real prose that is about nobody's life."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from memdir.memory.extract import extract
from memdir_bench.figures import Figure, machine
from memdir_bench.memory import documentation
from memdir_bench.memory.changes import changes
from memdir_bench.memory.diaries import LANGUAGES, diary, kept, remembered
from memdir_bench.memory.goals import figure
from memdir_bench.memory.judging import Reader, judged
from memdir_bench.memory.made_up_lives import life
from memdir_bench.report import reported
from memdir_bench.retrieval.metrics import wilson
from memdir_bench.scale.prose import pieces

LIVES: Final = 40
_DOCUMENTS: Final = 3_000
_DOCUMENT_BYTES: Final = 50_000
_POSTED_EVERY: Final = 10


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when a part could not be measured."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Both families, then the documentation of the packages on this machine, if there is some."""
    count = 4 if args.quick else LIVES
    reader = None
    if args.model is not None:
        from memdir.llm.providers import model
        from memdir.memory.model_reader import ModelReader

        reader = ModelReader(model(args.model, url=args.model_url)).statements
    figures = [one for family in ("tuned", "held") for one in _family(family, count, reader)]
    figures += _diaries()
    figures += [one for family in ("tuned", "held", "languages_tuned", "languages_held") for one in _changes(family)]
    figures += _prose(50 if args.quick else _DOCUMENTS)
    figures += _posted(500 if args.quick else None)
    return {"machine": machine(), "figures": [one.as_json() for one in figures], "failed": {}}


def _family(family: str, count: int, reader: Reader | None) -> Iterator[Figure]:
    lives = [life(family, seed) for seed in range(count)]
    began = time.perf_counter()
    score = judged(lives, reader)
    took_ms = (time.perf_counter() - began) * 1000 / sum(len(one.notes) for one in lives)
    for name, some, of in (
        ("precision", score.right, score.extracted),
        ("recall", score.found, score.stated),
        ("up_to_date", score.up_to_date, score.changed),
        ("supported", score.extracted - score.unsupported, score.extracted),
    ):
        spread = wilson(some, max(1, of))
        yield figure(f"{family}_{name}", some / max(1, of), "share", samples=of, spread=spread, better="higher")
    yield figure(f"{family}_contradictions", score.contradictions, "facts", samples=score.changed)
    yield figure(f"{family}_stale", score.stale, "facts", samples=score.stated)
    yield figure(f"{family}_rumours_believed", score.believed, "facts", samples=score.rumours)
    yield figure(f"{family}_profile_tokens", max(score.profile_tokens), "tokens", samples=len(lives), note="of the longest")
    yield figure(f"{family}_note", took_ms, "ms", samples=score.stated, note="extracted and reconciled")


def _diaries() -> Iterator[Figure]:
    """Four diaries that somebody wrote, each in its language and style."""
    all_entries = {language: diary(language) for language in LANGUAGES}
    found = {language: remembered(entries) for language, entries in all_entries.items()}
    after = {language: kept(entries) for language, entries in all_entries.items()}
    right, facts = sum(one.right for one in found.values()), sum(one.facts for one in found.values())
    recalled, worth = sum(one.found for one in found.values()), sum(one.worth for one in found.values())
    current, changed = sum(one.up_to_date for one in after.values()), sum(one.changed for one in after.values())
    for name, some, of, by in (
        ("precision", right, facts, {language: f"{one.right}/{one.facts}" for language, one in found.items()}),
        ("recall", recalled, worth, {language: f"{one.found}/{one.worth}" for language, one in found.items()}),
        ("up_to_date", current, changed, {language: f"{one.up_to_date}/{one.changed}" for language, one in after.items()}),
    ):
        note = ", ".join(f"{language} {share}" for language, share in by.items())
        spread = wilson(some, max(1, of))
        yield figure(f"diary_{name}", some / max(1, of), "share", samples=of, spread=spread, better="higher", note=note)
    yield figure("diary_contradictions", sum(one.contradictions for one in after.values()), "facts", samples=changed)
    yield figure("diary_stale", sum(one.stale for one in after.values()), "facts", samples=worth)


def _changes(family: str) -> Iterator[Figure]:
    """Facts that a later note in plain words ends, and those that it does not."""
    found, told = changes(family), changes(family, in_journal=True)
    for name, some, of in (
        ("ended", found.ended, found.to_end),
        ("stayed", found.stayed, found.to_stay),
        ("ended_in_journal", told.ended, told.to_end),
        ("stayed_in_journal", told.stayed, told.to_stay),
    ):
        yield figure(f"{family}_{name}", some / of, "share", samples=of, spread=wilson(some, of), better="higher")


def _prose(most: int) -> Iterator[Figure]:
    """READMEs, changelogs, licences and news of packages, as if they had been put among the memories."""
    documents = list(islice(documentation.documents(max_bytes=_DOCUMENT_BYTES), most))
    placed = ((text, f"/memory/{path.parent.name}/{path.name.removesuffix('.gz')}") for path, text in documents)
    yield from _with_facts("prose_documents_with_facts", placed)
    yield from _with_facts("renamed_documents_with_facts", ((text, "/memory/note.md") for _, text in documents))


def _posted(most: int | None) -> Iterator[Figure]:
    """Pieces of all of that documentation, as if a program had posted them without a place."""
    texts = islice(pieces(documentation.FOLDER), 0, most, _POSTED_EVERY)
    return _with_facts("posted_documents_with_facts", ((text, "") for text in texts))


def _with_facts(name: str, documents: Iterable[tuple[str, str]]) -> Iterator[Figure]:
    """The share of texts, each with its path, that bring a fact."""
    facts = [sum(not one.is_passing for one in extract(text, path, byte_at=int)) for text, path in documents]
    if facts:
        yield figure(name, sum(map(bool, facts)) / len(facts), "share", samples=len(facts), note=f"{sum(facts)} facts")
