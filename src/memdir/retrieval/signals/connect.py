"""Which passages the best hits are connected with: by references, rare things both mention, facts, being read together.

A connection has a strength from 0 to 1: how sure its kind is, less for what more passages share, less for what stands in a line
of the hit that has nothing of the query. What too many share connects nothing (`store.passages.entity_links`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from memdir.retrieval.signals import stems_in
from memdir.retrieval.words import Query
from memdir.store.passages.entity_links import KEYS_MAX, EntityLinks
from memdir.store.text.mentions import FILE, ID, Mention, base_names, file_keys, key_number, mentions, references, resolved
from memdir.store.types import Scope, StoredChunk

KEYS_OF_SEED_MAX: Final = 8
"""Things of one hit whose other places are looked up."""
CONNECTIONS_MAX: Final = 120
"""Passages that one search looks at."""
REFERS: Final = 1.0
DANGLING: Final = 0.8
"""Of a reference to a path that is not there, when a file of that name is elsewhere: one of the two was moved."""
REFERRED: Final = 0.9
SHARED_ID: Final = 1.0
SHARED_NAMES: Final = 0.95
"""A name of several words; one word of it may be somebody else's."""
SHARED_NAME: Final = 0.6
FACT: Final = {"says": 0.7, "updates": 0.9, "extends": 0.9, "derives": 0.9, "contradicts": 0.9, "about": 0.7}
ELSEWHERE: Final = 0.6
"""Of the strength of a name in whose line, and the two beside it, the hit has no word of the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A hit that is followed."""

    stored: StoredChunk
    score: float
    covered: frozenset[str] = frozenset()
    """Terms of the query that it has."""


class Connection(NamedTuple):
    """A passage beside seed number `seed`; `why` is a phrase for a person. A search makes hundreds, hence a tuple."""

    chunk_id: int
    seed: int
    strength: float
    why: str
    refers_to: str | None = None
    """The path that the passage must refer to: a name alone was looked up, the passage was not read yet."""


class CoRead(Protocol):
    """Who knows which files are read together."""

    def together(self, container_id: int, document_ids: Sequence[str]) -> Mapping[str, Sequence[tuple[str, float]]]:
        """For each document others that were read with it, at most eight, each with a strength from 0 to 1."""
        ...


class Connector:
    """Finds connections. Stateless; any thread may call."""

    def __init__(self, links: EntityLinks, co_read: CoRead | None = None) -> None:
        self._links = links
        self._co_read = co_read

    def connections(self, scope: Scope, query: Query, seeds: Sequence[Seed], *, least: float = 0.0) -> list[Connection]:
        """The strongest connections first, at most CONNECTIONS_MAX, in an order that depends on nothing else; several of the
        same passage are possible. Strength times the score of the seed is at least `least`. They may lead out of the scope:
        whoever reads the passages looks at that."""
        found = [
            *self._shared(scope.container_id, query, seeds, least),
            *self._referred(scope.container_id, seeds),
            *self._facts(scope.container_id, seeds),
            *self._read_together(scope.container_id, seeds),
        ]
        scores = [seed.score for seed in seeds]
        own = [seed.stored.id for seed in seeds]
        kept = [c for c in found if c.chunk_id != own[c.seed] and c.strength * scores[c.seed] >= least]
        return sorted(kept, key=lambda c: (-c.strength * scores[c.seed], c.chunk_id, c.seed, c.why))[:CONNECTIONS_MAX]

    def _shared(self, container_id: int, query: Query, seeds: Sequence[Seed], least: float) -> list[Connection]:
        """What else mentions the same things, and what refers to the files of the seeds."""
        wanted: dict[int, list[tuple[int, float, str, str | None]]] = {}
        asked = query.stems
        for number, seed in enumerate(seeds):
            for mention, strength in _telling(seed.stored.chunk.text, asked):
                wanted.setdefault(mention.number, []).append((number, strength, f"shares {mention.text}", None))
            path = seed.stored.path
            for key in file_keys(path) if path else ():
                wanted.setdefault(key_number(key), []).append((number, REFERRED, f"links to {path}", path))
        shared = [
            (strength * _rarity(len(ids)), number, why, path, ids)
            for thing, ids in self._links.sharing(container_id, list(wanted)[:KEYS_MAX]).items()
            for number, strength, why, path in wanted[thing]
        ]
        shared.sort(key=lambda item: -item[0] * seeds[item[1]].score)
        found: list[Connection] = []
        last = least
        for strength, number, why, path, ids in shared:
            if strength * seeds[number].score < (last if len(found) > CONNECTIONS_MAX + KEYS_MAX else least):
                break  # too weak, or weaker than as many as are looked at, even without those that lead back to their seed
            last = strength * seeds[number].score
            found += [Connection(chunk_id, number, strength, why, path) for chunk_id in ids]
        return found

    def _referred(self, container_id: int, seeds: Sequence[Seed]) -> list[Connection]:
        """The files that the seeds refer to."""
        meant = {
            (number, reference): resolved(reference, seed.stored.path)
            for number, seed in enumerate(seeds)
            for reference in references(seed.stored.chunk.text)[:KEYS_OF_SEED_MAX]
        }
        if not meant:
            return []
        by_path = self._links.at(container_id, [path for paths in meant.values() for path in paths])
        unknown = [key for key, paths in meant.items() if not any(path in by_path for path in paths)]
        by_name = self._links.called(container_id, [name for _, reference in unknown for name in base_names(reference)])
        targets: list[tuple[int, str, float]] = []
        for (number, reference), paths in meant.items():
            exact = next((by_path[path] for path in paths if path in by_path), None)
            if exact is not None:
                targets.append((number, exact, REFERS))
                continue
            files = [file for name in base_names(reference) for file in by_name.get(name, ())]
            fitting = [file for file in files if fits(reference, file[0])]
            sure = _rarity(1 + len(fitting or files)) * (1.0 if fitting else DANGLING)
            targets += [(number, document_id, REFERS * sure) for _, document_id in fitting or files]
        return self._beginnings(seeds, targets, "linked from")

    def _facts(self, container_id: int, seeds: Sequence[Seed]) -> list[Connection]:
        number_of = {seed.stored.document_id: number for number, seed in reversed(list(enumerate(seeds)))}
        return [
            Connection(
                chunk_id=tie.chunk_id,
                seed=number_of[tie.source_id],
                strength=FACT[tie.relation],
                why=f"a fact of it {tie.relation} one of {seeds[number_of[tie.source_id]].stored.path}"
                if tie.relation not in ("about", "says")
                else f"has a fact about {tie.subject}",
            )
            for tie in self._links.facts(container_id, list(number_of))
        ]

    def _read_together(self, container_id: int, seeds: Sequence[Seed]) -> list[Connection]:
        if self._co_read is None:
            return []
        number_of = {seed.stored.document_id: number for number, seed in reversed(list(enumerate(seeds)))}
        others = self._co_read.together(container_id, list(number_of))
        targets = [
            (number_of[document_id], other, min(1.0, strength))
            for document_id, found in others.items()
            for other, strength in found
        ]
        return self._beginnings(seeds, targets, "read together with")

    def _beginnings(self, seeds: Sequence[Seed], targets: Sequence[tuple[int, str, float]], relation: str) -> list[Connection]:
        passages = self._links.beginnings([document_id for _, document_id, _ in targets])
        return [
            Connection(chunk_id=chunk_id, seed=number, strength=strength, why=f"{relation} {seeds[number].stored.path}")
            for number, document_id, strength in targets
            if document_id != seeds[number].stored.document_id
            for chunk_id in passages.get(document_id, ())
        ]


def fits(reference: str, path: str) -> bool:
    """Whether the file at `path` may be what `reference` means: the folders that the reference names are those of the path."""
    folders = [part for part in reference.split("/")[:-1] if part not in ("", ".", "..")]
    return not folders or f"/{'/'.join(folders)}/" in path[: path.rfind("/") + 1]


def refers(passage: StoredChunk, path: str) -> bool:
    """Whether a passage refers to the file at `path`, as far as its text says."""
    keys = set(file_keys(path))
    return any(
        path in resolved(reference, passage.path) or (keys & set(file_keys(reference)) and fits(reference, path))
        for reference in references(passage.chunk.text)
    )


def _telling(text: str, asked: frozenset[str]) -> list[tuple[Mention, float]]:
    """What the passage mentions and the query, whose stems are `asked`, does not; each with its strength, the strongest
    KEYS_OF_SEED_MAX."""
    lines = text.split("\n")
    told = [len(asked & stems_in(line)) for line in lines]
    near = [max(told[max(0, place - 1) : place + 2]) for place in range(len(lines))]
    best = max(near, default=0)
    found = []
    for mention in mentions(text):
        if mention.kind == FILE or asked >= stems_in(mention.text):
            continue
        base = SHARED_NAMES if " " in mention.text else SHARED_NAME
        share = near[text.count("\n", 0, mention.start)] / best if best else 1.0
        found.append((mention, SHARED_ID if mention.kind == ID else base * (ELSEWHERE + (1 - ELSEWHERE) * share)))
    return sorted(found, key=lambda item: -item[1])[:KEYS_OF_SEED_MAX]


def _rarity(count: int) -> float:
    """1 for what two passages share, .77 for three, half for eight, a third for 32."""
    return min(1.0, 2 / (1 + math.log2(max(1, count))))
