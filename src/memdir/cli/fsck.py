"""`memdir fsck`: is the stored filesystem of a memory what it must be?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.output import Output
from memdir.cli.text import plural, visible
from memdir.core.errors import BusyError, NotFoundError

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
    for record in records:
        if record.state == "alive" and args.target is None:
            out.note(f"{record.name} is mounted at {record.path} and is left out")
            continue
        answers.append(_check(record, wants_repair=args.repair))
    if out.json:
        out.document(answers)
    else:
        for answer in answers:
            _print(answer, out, repair=args.repair)
        if not answers:
            out.note("there is no unmounted memory to check")
    return EXIT_OK if not any(answer["left"] for answer in answers) else EXIT_NOTHING


def _chosen(registry: MountRegistry, target: str | None) -> list[MountRecord]:
    from memdir.cli.targets import find_mount

    if target is None:
        return registry.all()
    if "/" not in target and registry.find_by_name(target):
        return registry.find_by_name(target)
    resolved = Path(target).absolute()
    stored = [record for record in registry.all() if Path(record.cache_dir) == resolved]
    return stored or [find_mount(registry, target)]


def _check(record: MountRecord, *, wants_repair: bool) -> dict[str, Any]:
    from memdir.daemon.registry import MountLock
    from memdir.fs.cache.fsck import check, repair

    folder = Path(record.cache_dir)
    if record.state == "alive":
        raise BusyError(f"{record.name} is mounted at {record.path}", hint=f"first run `memdir unmount {record.name}`")
    if not (folder / "cache.db").exists():
        raise NotFoundError(f"{record.name} has no stored filesystem in {folder}", hint="mount it once to make one")
    lock = MountLock.acquire(record.lock_file)
    try:
        found = check(folder)
        if wants_repair and found:
            repair(folder)
            left = check(folder)
        else:
            left = found
    finally:
        lock.release()
    return {
        "name": record.name,
        "path": record.path,
        "folder": str(folder),
        "found": [str(finding) for finding in found],
        "left": [str(finding) for finding in left],
    }


def _print(answer: dict[str, Any], out: Output, *, repair: bool) -> None:
    name = out.name(answer["name"])
    if not answer["found"]:
        out.line(f"{name}: clean")
        return
    out.line(f"{name}: {plural(len(answer['found']), 'finding')}")
    for finding in answer["found"]:
        out.line(f"  {visible(finding)}")
    if not repair:
        out.note(f"`memdir fsck {answer['name']} --repair` repairs what can be repaired")
    elif answer["left"]:
        out.line(f"{name}: {plural(len(answer['left']), 'finding')} could not be repaired:")
        for finding in answer["left"]:
            out.line(f"  {visible(finding)}")
    else:
        out.line(f"{name}: repaired")


COMMAND = Command(
    name="fsck",
    usage="[OPTIONS] [NAME|PATH]",
    description="Check every rule of a memory's stored filesystem. The memory must not be mounted.",
    examples=[("memdir fsck", "every unmounted memory"), ("memdir fsck notes --repair", "check and repair one")],
    exit_codes=[(0, "clean, or everything was repaired"), (1, "something is wrong and not repaired")],
    configure=_configure,
    run=_run,
)
