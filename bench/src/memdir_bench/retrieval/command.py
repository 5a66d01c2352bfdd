"""`memdir bench retrieval`: how well search ranks, per stage and ablated, with intervals."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from memdir.core.errors import UsageError
from memdir.core.paths import app_paths
from memdir_bench.figures import Figure, machine
from memdir_bench.report import reported
from memdir_bench.retrieval import collections, exact, hops, languages, mixed, negatives
from memdir_bench.retrieval.cache import CachedEmbedder
from memdir_bench.retrieval.collections import Collection
from memdir_bench.retrieval.fixtures import filled
from memdir_bench.retrieval.stages import figures, outcomes


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """0 when measured, 2 when a part could not be."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure everything that was asked for."""
    from memdir.retrieval.embed import MiniLmEmbedder, StaticEmbedder
    from memdir.retrieval.embed.e5 import MultilingualEmbedder

    wanted: list[Collection] = []
    if args.cranfield is not None:
        wanted.append(collections.cranfield(args.cranfield))
    if args.cisi is not None:
        wanted.append(collections.cisi(args.cisi))
    if not wanted and not (args.languages or args.hops or args.lines or args.unrelated or args.mixed):
        raise UsageError(
            "there is nothing to measure",
            hint="name a collection: --cranfield DIR, --cisi DIR; or say --lines, --unrelated, --languages, --hops or --mixed",
        )
    paths = app_paths()
    dense = CachedEmbedder(MiniLmEmbedder(paths.models_dir), args.cache or paths.cache_dir / "bench")
    found: list[Figure] = []
    for collection in wanted:
        found += measure(collection, dense, [other for other in wanted if other is not collection])
    if args.unrelated:
        found += negatives.run(wanted, dense, say)
        dense.save()
    if args.lines:
        found += exact.figures(StaticEmbedder(), dense, say)
        dense.save()
    if args.languages:
        found += languages.figures(MultilingualEmbedder(paths.models_dir))
    if args.hops:
        found += hops.run(dense, say)
        dense.save()
    if args.mixed:
        found += mixed.run(dense, say)
        dense.save()
    return {"machine": machine(), "figures": [figure.as_json() for figure in found], "failed": {}}


def measure(collection: Collection, dense: CachedEmbedder, others: Sequence[Collection]) -> Sequence[Figure]:
    """One collection, from its files to its figures."""
    say(f"{collection.name}: indexing {len(collection.texts)} files …")
    with filled(collection.texts, dense, say) as fixture:
        dense.save()
        say(f"{collection.name}: asking {len(collection.questions)} questions …")
        made = figures(collection.name, outcomes(fixture, collection.questions))
        unrelated = [(other.name, negatives.texts(negatives.held_out(other.questions))) for other in others]
        unrelated += negatives.made_up(collection.texts)
        made += negatives.figures(collection.name, fixture, unrelated, negatives.held_out(collection.questions))
    dense.save()
    return made


def say(text: str) -> None:
    """A line for people."""
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()
