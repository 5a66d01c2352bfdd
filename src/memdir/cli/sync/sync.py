"""`memdir sync`: push now; with `--wait`, until the server can find all of it."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, seconds
from memdir.cli.output import Output, Progress
from memdir.cli.text import held_back, plural, visible
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.daemon.registry import MountRecord

_TIMEOUT_DEFAULT_S: Final = 600.0
_SLICE_S: Final = 1.0
"""One question to the daemon waits this long; then progress is shown and it is asked again."""
_ANSWER_TIMEOUT_S: Final = 30.0


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "name",
        metavar="NAME|PATH",
        nargs="?",
        help="a mount, or a file or folder in one (default: the mount around you, or the only one)",
    )
    parser.add_argument(
        "--wait",
        action="store_true",
        help="wait until every change is pushed and searchable (the transformer's vectors may follow, see 'memdir status')",
    )
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=seconds(),
        default=_TIMEOUT_DEFAULT_S,
        help=f"wait at most S seconds (default: {_TIMEOUT_DEFAULT_S:g})",
    )
    decision = parser.add_mutually_exclusive_group()
    decision.add_argument(
        "--confirm-deletions",
        action="store_true",
        help="delete here what is missing at the server and was held back (see `memdir status`)",
    )
    decision.add_argument(
        "--upload-again",
        action="store_true",
        help="put at the server again what is missing there and was held back",
    )


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import find_mount, open_registry, path_in_mount, require_running

    registry = open_registry()
    record = require_running(find_mount(registry, args.name))
    scope = path_in_mount(registry, record, args.name) or "/"
    if not record.sync:
        raise UsageError(f"{record.name} is mounted with --no-sync", hint="unmount it and mount it again without --no-sync")
    decided = _decide(record, args, out)
    result = _wait(record, scope, args.timeout) if args.wait else _ask(record, scope, wait=False, timeout_s=0.0)
    if out.json:
        out.document({"name": record.name, "path": record.path} | result | decided)
    else:
        out.line(_sentence(record.name, scope, result, waited=args.wait))
        if result.get("held_deletions"):
            out.line(f"{record.name}: {held_back(record.name, result)}")
    finished = result.get("drained") and result.get("searchable") and not result.get("parked_here")
    return EXIT_OK if finished or not args.wait else EXIT_NOTHING


def _decide(record: MountRecord, args: argparse.Namespace, out: Output) -> dict[str, int]:
    """Let go of what is held back, when a flag says how; how many files that are."""
    from memdir.cli.targets import control

    if args.confirm_deletions:
        operation, field, key, done = "confirm", "confirmed", "confirmed_deletions", "deleted here"
    elif args.upload_again:
        operation, field, key, done = "upload_again", "uploaded", "uploaded_again", "put at the server again"
    else:
        return {}
    count = int(control(record).call(operation, _ANSWER_TIMEOUT_S).get(field) or 0)
    if not out.json:
        out.line(f"{record.name}: {plural(count, 'file') + f' will be {done}' if count else 'nothing is held back'}")
    return {key: count}


def _ask(record: MountRecord, scope: str, *, wait: bool, timeout_s: float) -> dict[str, Any]:
    from memdir.cli.targets import control

    only: dict[str, str] = {} if scope == "/" else {"path": scope}
    return control(record).call("sync", timeout_s + _ANSWER_TIMEOUT_S, wait=wait, timeout_s=timeout_s, **only)


def _wait(record: MountRecord, scope: str, timeout_s: float) -> dict[str, Any]:
    deadline = time.monotonic() + timeout_s
    before: int | None = None
    with Progress("pushing:", noun="change") as progress:
        while True:
            left_s = deadline - time.monotonic()
            result = _ask(record, scope, wait=True, timeout_s=max(0.0, min(_SLICE_S, left_s)))
            if (result.get("drained") and result.get("searchable")) or left_s <= _SLICE_S:
                return result
            waiting, pushed = int(result.get("queue_length") or 0), int(result.get("pushed") or 0)
            before = pushed if before is None else before
            detail = "" if waiting else "the server is indexing"
            progress.update(pushed - before, pushed - before + waiting, detail)


def _sentence(name: str, scope: str, result: dict[str, Any], *, waited: bool) -> str:
    waiting, parked = int(result.get("queue_length") or 0), int(result.get("parked") or 0)
    where = f"{name}: " if scope == "/" else f"{name}{visible(scope)}: "
    everything = "everything else" if result.get("parked_here") else "everything"
    if result.get("drained") and result.get("searchable"):
        text = f"{where}{everything} is pushed and searchable"
    elif result.get("drained"):
        text = f"{where}{everything} is pushed; the server is still indexing"
    else:
        text = f"{where}{plural(waiting, 'change')} still to push" + ("" if waited else ", in the background")
    if result.get("problem"):
        text += f"; {visible(str(result['problem']))}"
    return text + (f"; {parked} parked, see `memdir queue`" if parked else "")


COMMAND = Command(
    name="sync",
    usage="[OPTIONS] [NAME|PATH]",
    description=(
        "Push changes now instead of a moment later. With --wait, return when all of it can be found on the server.\n"
        "When suddenly a large part of a memory is missing at the server (it was wiped, it is another one, somebody deleted\n"
        "it), those files are held back: they stay here until --upload-again or --confirm-deletions."
    ),
    examples=[
        ("memdir sync", "start pushing, do not wait"),
        ("memdir sync notes --wait --timeout 60", "for scripts"),
        ("memdir sync notes/work --wait", "only what stands in this folder"),
        ("memdir sync notes --upload-again", "the server was wiped: put everything back"),
        ("memdir sync notes --confirm-deletions", "yes, all these files really are to go"),
    ],
    exit_codes=[
        (0, "done; without --wait: started"),
        (1, "--wait ended before all was pushed and searchable, or some of it is parked"),
    ],
    configure=_configure,
    run=_run,
)
