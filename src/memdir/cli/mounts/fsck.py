"""`memdir fsck`: is the stored filesystem of a memory what it must be?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memdir.cli.command import EXIT_ERROR, EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.output import Output, Progress
from memdir.cli.text import plural, visible
from memdir.core.errors import BusyError, MemdirError, NotFoundError

if TYPE_CHECKING:
    from memdir.daemon.registry import MountRecord, MountRegistry


def _configure(parser: Parser) -> None:
    parser.add_argument("target", metavar="NAME|PATH", nargs="?", help="one memory, by name or mountpoint (default: all)")
    parser.add_argument("--repair", action="store_true", help="repair what can be repaired")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import open_registry

    registry = open_registry()
    records = _chosen(registry, args.target)
    answers: list[dict[str, Any]] = []
    are_some_free = len(records) > 1 and any(record.state != "alive" for record in records)
    for record in records:
        if record.state == "alive" and (args.target is None or are_some_free):
            out.note(f"{record.name} is mounted at {record.path} and is left out")
            continue
        answers.append(_check(record, wants_repair=args.repair) if args.target else _check_one_of_many(record, args.repair))
    if out.json:
        out.document(answers)
    else:
        names = [answer["name"] for answer in answers]
        for answer in answers:
            place = f" at {out.name(answer['path'])}" if names.count(answer["name"]) > 1 else ""
            _print(answer, out.name(answer["name"]) + place, out, repair=args.repair)
        if not answers:
            out.note("there is no unmounted memory to check")
    if any(answer["error"] for answer in answers):
        return EXIT_ERROR
    return EXIT_NOTHING if any(answer["left"] or answer["lost"] for answer in answers) else EXIT_OK


def _chosen(registry: MountRegistry, target: str | None) -> list[MountRecord]:
    from memdir.cli.targets import find_mount

    if target is None:
        return registry.all()
    if "/" not in target and registry.find_by_name(target):
        return registry.find_by_name(target)
    resolved = Path(target).absolute()
    stored = [record for record in registry.all() if Path(record.cache_dir) == resolved]
    return stored or [find_mount(registry, target)]


def _check_one_of_many(record: MountRecord, wants_repair: bool) -> dict[str, Any]:
    """One that cannot be checked must not keep the others from it."""
    try:
        return _check(record, wants_repair=wants_repair)
    except MemdirError as error:
        return _answer(record) | {"error": error.message, "hint": error.hint}


def _answer(record: MountRecord) -> dict[str, Any]:
    empty: dict[str, Any] = {"found": [], "salvaged": [], "lost": [], "left": [], "error": None, "hint": None}
    return {"name": record.name, "path": record.path, "folder": record.cache_dir, **empty}


def _check(record: MountRecord, *, wants_repair: bool) -> dict[str, Any]:
    from memdir.cli.targets import spoken
    from memdir.daemon.recovery import lost_database
    from memdir.daemon.registry import MountLock
    from memdir.fs.cache.fsck import check, repair
    from memdir.fs.cache.tables import is_missing

    folder = Path(record.cache_dir)
    if record.state == "alive":
        unmount = f"memdir unmount {spoken(record.name, record.path)}"
        hint = f"first run `{unmount}`; while it is mounted, its daemon changes what would be checked"
        raise BusyError(f"{record.name} is mounted at {record.path}", hint=hint)
    if record.used and is_missing(folder):
        raise lost_database(folder, record.name)
    if not (folder / "cache.db").exists():
        raise NotFoundError(f"{record.name} has no stored filesystem in {folder}", hint="mount it once to make one")
    lock = MountLock.acquire(record.lock_file)
    try:
        with Progress(f"{record.name}:", noun="step") as progress:

            def show(what: str, done: int, total: int) -> None:
                progress.update(done, total, detail=what)

            found = check(folder, progress=show)
            mended = repair(folder, progress=show) if wants_repair and found else []
    finally:
        lock.release()
    left = [finding for finding in mended if not finding.repaired] if wants_repair else found
    return _answer(record) | {
        "found": [str(finding) for finding in found],
        "salvaged": [finding.detail for finding in mended if finding.kind == "salvaged"],
        "lost": [finding.detail for finding in mended if finding.kind == "lost"],
        "left": [str(finding) for finding in left if finding.kind not in ("salvaged", "lost")],
    }


def _print(answer: dict[str, Any], name: str, out: Output, *, repair: bool) -> None:
    if answer["error"]:
        out.line(f"{name}: not checked: {visible(answer['error'])}")
        if answer["hint"]:
            out.line(f"  hint: {visible(answer['hint'])}")
        return
    if not answer["found"]:
        out.line(f"{name}: clean")
        return
    out.line(f"{name}: {plural(len(answer['found']), 'finding')}")
    for finding in answer["found"]:
        out.line(f"  {visible(finding)}")
    for sentence in answer["salvaged"]:
        out.line(f"{name}: {visible(sentence)}")
    if answer["lost"]:
        out.line(f"{name}: what could not be saved, or not as it was:")
    for sentence in answer["lost"]:
        out.line(f"  {visible(sentence)}")
    if not repair:
        out.note(f"`memdir fsck {answer['name']} --repair` repairs what can be repaired")
    elif answer["left"]:
        out.line(f"{name}: {plural(len(answer['left']), 'finding')} could not be repaired:")
        for finding in answer["left"]:
            out.line(f"  {visible(finding)}")
    else:
        out.line(f"{name}: repaired" + (", with losses" if answer["lost"] else ""))


COMMAND = Command(
    name="fsck",
    usage="[OPTIONS] [NAME|PATH]",
    description=(
        "Check every rule of a memory's stored filesystem. The memory must not be mounted. --repair mends what breaks a rule\n"
        "without dropping anything that has bytes (a file that lost its name is found in /lost+found). Of a damaged database\n"
        "it saves what can be read, says what cannot, and keeps the damaged file beside the new one."
    ),
    examples=[("memdir fsck", "every unmounted memory"), ("memdir fsck notes --repair", "check and repair one")],
    exit_codes=[
        (0, "clean, or everything was repaired"),
        (1, "something is wrong and not repaired, or something was lost"),
        (2, "it could not be checked: mounted, in use, made by a newer memdir, or an error"),
    ],
    configure=_configure,
    run=_run,
)
