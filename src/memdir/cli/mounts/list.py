"""`memdir list`: which memories are mounted, and which daemons died."""

from __future__ import annotations

import argparse
from typing import Any

from memdir.cli.command import EXIT_OK, Command, Parser
from memdir.cli.output import Output


def _configure(parser: Parser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="also memories that are not mounted now but have data here")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import mount_command, open_registry
    from memdir.daemon.registry import MountRecord

    registry = open_registry()
    records: list[MountRecord] = [record for record in registry.all() if args.all or record.state != "stopped"]
    for problem in registry.damaged():
        out.note(f"{problem.message} ({problem.hint})")
    if out.json:
        out.document([describe(record) for record in records])
        return EXIT_OK
    if not records:
        out.note("nothing is mounted; start with `memdir mount NAME`")
        return EXIT_OK
    names = [out.name(record.name) for record in records]
    width = max(map(len, names))
    for record, name in zip(records, names, strict=True):
        state = state_word(record)
        kind = {"mounted": "ok", "dead": "fail"}.get(state, "dim")
        line = f"{name:<{width}}  {out.style(f'{state:<9}', kind)}  {out.name(record.path)}"
        options = "".join([" (read-only)" if record.read_only else "", "" if record.sync else " (no sync)"])
        out.line(line + options)
        if state == "dead":
            out.note(f"the daemon of {record.name} ended; `{mount_command(record)}` goes on where it was")
    return EXIT_OK


def state_word(record: Any) -> str:
    """mounted, served (over NFS, and nobody may mount it here), detached (its users finish), dead or unmounted."""
    state: str = {"alive": "mounted", "dead": "dead", "stopped": "unmounted"}[record.state]
    if state == "mounted" and (record.detached or record.nfs_problem):
        return "detached" if record.detached else "served"
    return state


def describe(record: Any) -> dict[str, Any]:
    """One mount for `--json`."""
    state = state_word(record)
    return {
        "name": record.name,
        "path": record.path,
        "state": state,
        "pid": record.pid if state in ("mounted", "served", "detached") else None,
        "id": record.id,
        "sync": record.sync,
        "read_only": record.read_only,
        "log_file": record.log_file,
    }


COMMAND = Command(
    name="list",
    usage="[OPTIONS]",
    description="List the memories that this user has mounted, with the ones whose daemon died.",
    examples=[("memdir list", "what is mounted"), ("memdir list --all --json", "everything known here, for programs")],
    exit_codes=[(0, "listed, even when there is nothing to list")],
    configure=_configure,
    run=_run,
)
