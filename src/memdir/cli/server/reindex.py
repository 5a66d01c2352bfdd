"""`memdir server reindex`: passages, memories and indexes made anew, while searches are answered."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.output import Output, Progress
from memdir.cli.server.upkeep import configure_storage
from memdir.cli.text import plural, visible
from memdir.core.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from memdir.store.store import Store

_POLL_S: Final = 0.25
_FAILED_SHOWN: Final = 20


def _what(text: str) -> tuple[str, ...]:
    from memdir.api.indexes import DERIVED

    wanted = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    unknown = [name for name in wanted if name not in DERIVED]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(DERIVED)}")
    return wanted


def _configure(parser: Parser) -> None:
    parser.add_argument("--container", metavar="NAME", help="only of one memory (default: of all)")
    parser.add_argument(
        "--what", metavar="NAME,NAME…", type=_what, default=("lexical", "vectors", "trigrams"),
        help="lexical, vectors, trigrams, chunks, memories, transcriptions (default: the first three)",
    )  # fmt: skip
    parser.add_argument("--no-wait", action="store_true", help="ask the running server and return at once")
    configure_storage(parser)


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.client.local import running_server
    from memdir.core.paths import app_paths

    elsewhere = args.database_url is not None or args.database_url_file is not None
    server = None if elsewhere else running_server(app_paths())
    if server is None and args.no_wait:
        raise UsageError("no server runs that could do it in the background", hint="leave --no-wait out")
    answer = _by_server(args, out) if server is not None else _offline(args)
    if out.json:
        out.document(answer)
    else:
        _show(answer, out, waited=not args.no_wait)
    return EXIT_NOTHING if answer["failed"] else EXIT_OK


def _by_server(args: argparse.Namespace, out: Output) -> dict[str, Any]:
    from memdir.cli.server.admin_calls import ask

    body: dict[str, Any] = {"what": list(args.what), "containerTag": args.container}
    answer = asked = ask("POST", "/v1/indexes:rebuild", body=body)
    if not args.no_wait:
        with Progress("reindex:", noun="step") as progress:
            while answer["running"]:
                current = answer["current"]
                if current is not None:
                    detail = f"{current['what']} of {visible(current['container_tag'] or 'a deleted container')}"
                    progress.update(current["done"], current["total"], detail=detail)
                else:
                    progress.update(answer["documents_left"], detail="documents left")
                time.sleep(_POLL_S)
                answer = ask("GET", "/v1/indexes")
    del out
    return answer | {"skipped": asked["skipped"]}


def _offline(args: argparse.Namespace) -> dict[str, Any]:
    from memdir.core.paths import app_paths
    from memdir.retrieval.derived_indexes import Rebuilds
    from memdir.server.background.trigram_indexes import every_index
    from memdir.server.services.admin.indexes import asked, offline_view
    from memdir.server.storage import StorageOptions, maintained_store

    options = StorageOptions(database_url=args.database_url, database_url_file=args.database_url_file, blobs=args.blobs)
    with maintained_store(options, app_paths(), alone=True) as store, Progress("reindex:", noun="step") as progress:
        ids = _containers(store, args.container)
        rebuilds = Rebuilds(store.folder, every_index(store))
        skipped = asked(store, rebuilds, ids, args.what)
        rebuilds.run(lambda step: progress.update(step.done, step.total))
        return offline_view(store, rebuilds, ids, skipped)


def _containers(store: Store, name: str | None) -> list[int]:
    from memdir.retrieval.derived_indexes import container_ids
    from memdir.store.accounts.orgs import ORG_LOCAL

    if name is None:
        return container_ids(store)
    found = store.containers.find(ORG_LOCAL, name)
    if found is None:
        raise NotFoundError(f"there is no container {name!r}", hint="`memdir list` shows the memories of this machine")
    return [found.id]


def _show(answer: dict[str, Any], out: Output, *, waited: bool) -> None:
    if waited and not answer["running"]:
        out.line(f"built {plural(answer['builds_done'], 'index', 'indexes')} anew; all documents are done")
    else:
        left = answer["builds"] - answer["builds_done"]
        out.line(f"{plural(left, 'index', 'indexes')} and {plural(answer['documents_left'], 'document')} are still to be done")
        if answer["documents_left"]:
            out.note("the server does them while it runs; `memdir server jobs` shows them")
    for name in answer["skipped"]:
        out.note(f"{name}: the store keeps this itself, up to date with every change; nothing to build")
    for reason in answer["failed"][:_FAILED_SHOWN]:
        out.line(f"failed: {visible(reason)}")


COMMAND = Command(
    name="server reindex",
    usage="[OPTIONS]",
    description=(
        "Make derived data anew from what the server keeps. A running server does it in the background and answers searches\n"
        "from the old until the new is whole; without one it is done here (passages and memories wait for its next start).\n"
        "What was asked for is on the disk: after a kill the next start goes on."
    ),
    examples=[
        ("memdir server reindex", "all indexes, of all memories"),
        ("memdir server reindex --container notes --what chunks,memories", "cut and read every file of a memory again"),
        ("memdir server reindex --what transcriptions", "read PDFs, pictures, recordings again that could not be read"),
        ("memdir server reindex --json", "builds, builds_done, documents_left, skipped, failed"),
    ],
    exit_codes=[(0, "done, or asked for with --no-wait"), (1, "some could not be built")],
    configure=_configure,
    run=_run,
)
