"""`memdir recover`: find what a crash or a hang has left behind, say it, put it right."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_ERROR, EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.output import Output
from memdir.cli.text import visible
from memdir.core.errors import MemdirError, NotFoundError, UsageError

if TYPE_CHECKING:
    from memdir.daemon.recovery import Trouble
    from memdir.daemon.registry import MountRecord, MountRegistry

_EXITS: Final = {"repaired": EXIT_OK, "checked": EXIT_OK, "found": EXIT_NOTHING, "left": EXIT_NOTHING, "failed": EXIT_ERROR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one trouble: `repaired`, `checked` (nothing was wrong after all), `found` (--dry-run), `left` (a person
    decides) or `failed`."""

    trouble: Trouble
    result: str
    lines: tuple[str, ...] = ()
    hint: str = ""


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "target", metavar="NAME|PATH", nargs="?",
        help="one memory, by name, mountpoint or data folder (default: whatever is wrong with any mount)",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="also check the caches of memories that ended in order")
    parser.add_argument("--force", action="store_true", help="end a memdir process that holds a cache and does not answer")
    parser.add_argument("--dry-run", action="store_true", help="say what is wrong and what would be done; change nothing")
    parser.add_argument("--as", dest="name", metavar="NAME", help="the name for a data folder that lost its record")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import check_container_name, open_registry

    if args.all and args.target is not None:
        raise UsageError("either one memory or --all", hint="leave one of them out")
    if args.name is not None:
        check_container_name(args.name)
        if args.target is None or "/" not in args.target:
            raise UsageError("--as needs the data folder that the name is for", hint="memdir recover FOLDER --as NAME")
    registry = open_registry()
    outcomes: list[Outcome] = []
    for trouble in _troubles(registry, args):
        if not trouble.sentence and args.dry_run:
            continue  # a check without a finding so far
        outcomes.append(_mend(registry, trouble, dry_run=args.dry_run))
        if not out.json:
            _print(outcomes[-1], out)
    if out.json:
        out.document({"ok": not any(_EXITS[outcome.result] for outcome in outcomes), "troubles": [*map(_json, outcomes)]})
    elif not outcomes:
        out.line("nothing is wrong")
    return max((_EXITS[outcome.result] for outcome in outcomes), default=EXIT_OK)


def _troubles(registry: MountRegistry, args: argparse.Namespace) -> Iterator[Trouble]:
    """Records first, because what belongs to none would otherwise not be found by its name."""
    from memdir.core.paths import app_paths
    from memdir.daemon import leftovers, recovery

    target: str | None = args.target
    found = list(leftovers.find(app_paths(), registry, adopt_as=args.name))
    if target is not None:
        place = str(Path(target).absolute())
        mine = [trouble for trouble in found if trouble.path == place or (trouble.name is not None and trouble.name == target)]
        yield from mine
        records = _chosen(registry, target)
        if not mine and not records:
            unknown = recovery.at_place(Path(place))
            if unknown is None:
                raise NotFoundError(f"there is no memory {target!r}", hint="`memdir list --all` shows yours")
            yield unknown
            return
    else:
        yield from found
        records = registry.all()
    for record in records:
        thorough = args.all or target is not None
        yield from recovery.of_memory(registry, record, force=args.force, thorough=thorough)


def _chosen(registry: MountRegistry, target: str) -> list[MountRecord]:
    from memdir.cli.targets import find_mount

    if "/" not in target and registry.find_by_name(target):
        return registry.find_by_name(target)
    folder = str(Path(target).absolute())
    stored = [record for record in registry.all() if record.cache_dir == folder]
    if stored:
        return stored
    try:
        return [find_mount(registry, target)]
    except NotFoundError:
        return []


def _mend(registry: MountRegistry, trouble: Trouble, *, dry_run: bool) -> Outcome:
    if trouble.mend is None:
        return Outcome(trouble=trouble, result="left", hint=trouble.hint)
    if dry_run:
        return Outcome(trouble=trouble, result="found", lines=(f"would {trouble.plan}",), hint=trouble.hint)
    try:
        # What belongs to no record may belong to a mount that is starting at this moment.
        with nullcontext() if trouble.name is not None else registry.exclusive():
            lines = tuple(trouble.mend())
        # Without a sentence nothing was known to be wrong: a check, and more than one line says that it found something.
        return Outcome(trouble=trouble, result="repaired" if trouble.sentence or len(lines) > 1 else "checked", lines=lines)
    except MemdirError as error:
        return Outcome(trouble=trouble, result="failed", lines=(f"not repaired: {error.message}",), hint=error.hint)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        return Outcome(
            trouble=trouble, result="failed", lines=(f"not repaired: {error.strerror}{place}",), hint="see `memdir doctor`"
        )


def _print(outcome: Outcome, out: Output) -> None:
    trouble = outcome.trouble
    subject = trouble.name or "memdir"
    if trouble.sentence:
        out.line(f"{out.style(out.name(subject), 'bold')}: {visible(trouble.sentence)}")
    for line in outcome.lines:
        shown = visible(line) if trouble.sentence else f"{out.name(subject)}: {visible(line)}"
        kind = {"failed": "fail", "repaired": "ok", "checked": "ok"}.get(outcome.result, "warn")
        out.line(f"  {out.style(shown, kind)}" if trouble.sentence else out.style(shown, kind))
    if outcome.hint:
        out.line(f"  what to do: {visible(outcome.hint)}")
    out.flush()


def _json(outcome: Outcome) -> dict[str, Any]:
    trouble = outcome.trouble
    return {
        "kind": trouble.kind,
        "name": trouble.name,
        "path": trouble.path,
        "problem": trouble.sentence or None,
        "result": outcome.result,
        "done": list(outcome.lines),
        "hint": outcome.hint or None,
    }


COMMAND = Command(
    name="recover",
    usage="[OPTIONS] [NAME|PATH]",
    description=(
        "Find what a crash or a hang has left behind and put it right: mounts without a daemon, daemons that hang, caches\n"
        "that somebody holds, records that cannot be read, stale sockets, half-written files. Nothing acknowledged is lost:\n"
        "the journal is brought into the cache, the cache is checked, and no cache is ever deleted. A mounted memory that is\n"
        "well is left alone."
    ),
    examples=[
        ("memdir recover", "whatever is wrong"),
        ("memdir recover notes", "one memory, with a check of its cache"),
        ("memdir recover notes --force", "although its daemon hangs: it is ended"),
        ("memdir recover --all --dry-run --json", "for monitoring"),
    ],
    exit_codes=[
        (0, "nothing is wrong, or all of it was repaired"),
        (1, "something is left that a person has to decide; with --dry-run: something is wrong"),
        (2, "something could not be repaired, or an error"),
    ],
    configure=_configure,
    run=_run,
)
