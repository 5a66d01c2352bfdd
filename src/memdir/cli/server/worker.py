"""`memdir server worker`: processes that take documents through the pipeline, beside the servers."""

from __future__ import annotations

import argparse

from memdir.cli.command import EXIT_OK, Command, Parser, bounded_int
from memdir.cli.output import Output
from memdir.cli.server.server import WORKERS_MAX, add_storage_options, storage_of


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "--workers", metavar="N", type=bounded_int(1, WORKERS_MAX), default=1,
        help="processes; each loads the models for itself (default: 1)",
    )  # fmt: skip
    add_storage_options(parser)


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.server.indexing.worker_processes import WorkerOptions, run

    out.flush()
    run(WorkerOptions(count=args.workers, storage=storage_of(args)))
    return EXIT_OK


COMMAND = Command(
    name="server worker",
    usage="[OPTIONS]",
    description=(
        "Take documents through the pipeline in processes beside the servers, logging to standard error, until Ctrl-C or\n"
        "SIGTERM. Needs PostgreSQL. A process that dies is started again, and what it worked on goes on within 20 seconds."
    ),
    examples=[
        ("memdir server worker", "one, over the database that MEMDIR_DATABASE_URL names"),
        (
            "memdir server worker --workers 4 --database-url-file /etc/memdir/url",
            "four, beside `memdir server run --workers 0`",
        ),
    ],
    exit_codes=[(0, "it ended as asked")],
    configure=_configure,
    run=_run,
)
