"""`memdir status`: how a mount is doing: its daemon, its queue, its server."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.output import Output
from memdir.cli.text import held_back, human_bytes, human_duration, plural, visible
from memdir.core.errors import MemdirError

if TYPE_CHECKING:
    from memdir.daemon.registry import MountRecord

_TIMEOUT_S: Final = 10.0


def _configure(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="a name or a path (default: every mount)")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import find_mount, open_registry

    registry = open_registry()
    if args.name is not None:
        answers = [ask(find_mount(registry, args.name))]
    else:
        answers = [ask(record) for record in registry.all() if record.state != "stopped"]
    if out.json:
        out.document(answers[0] if args.name is not None else answers)
    elif not answers:
        out.note("nothing is mounted; start with `memdir mount NAME`")
    else:
        for position, answer in enumerate(answers):
            if position:
                out.line()
            _print(answer, out)
    return EXIT_OK if all(answer["state"] == "mounted" for answer in answers) else EXIT_NOTHING


def ask(record: MountRecord) -> dict[str, Any]:
    """The daemon's own account, or what can be said about one that does not answer. Always the same leading keys."""
    from memdir.cli.targets import control, mount_command

    answer: dict[str, Any] = {
        "name": record.name,
        "path": record.path,
        "nfs_command": record.nfs_command,
        "state": "mounted",
        "pid": record.pid,
        "uptime_s": None,
        "queue_length": None,
        "server": None,
        "sync": record.sync,
        "read_only": record.read_only,
        "log_file": record.log_file,
    }
    state = record.state
    if state != "alive":
        dead = state == "dead"
        return answer | {
            "state": "dead" if dead else "unmounted",
            "pid": None,
            "error": f"the daemon (pid {record.pid}) ended without unmounting" if dead else None,
            "hint": f"`{mount_command(record)}` goes on where it was; nothing is lost"
            if dead
            else f"`{mount_command(record)}`",
        }
    try:
        return answer | control(record).call("status", _TIMEOUT_S, kept_here=True)
    except MemdirError as error:
        return answer | {"state": "unresponsive", "error": error.message, "hint": error.hint or "see `memdir logs`"}


def _print(answer: dict[str, Any], out: Output) -> None:
    kind = {"mounted": "ok", "dead": "fail", "unresponsive": "fail"}.get(answer["state"], "dim")
    out.line(f"{out.style(out.name(answer['name']), 'bold')}  {out.style(answer['state'], kind)}")
    rows: list[tuple[str, str]] = [("path", out.name(answer["path"]) + (" (read-only)" if answer.get("read_only") else ""))]
    rows += [
        ("nfs", f"served, not mounted; as root: {out.name(command)}") for command in [answer.get("nfs_command")] if command
    ]
    if answer.get("error"):
        rows += [("problem", visible(answer["error"])), ("what to do", visible(answer["hint"]))]
    elif answer["state"] == "unmounted":
        rows.append(("what to do", visible(answer["hint"])))
    if answer["uptime_s"] is not None:
        rows.append(("daemon", f"pid {answer['pid']}, up {human_duration(answer['uptime_s'])}"))
        rows.append(("server", _server_line(answer)))
        rows.append(("queue", _queue_line(answer)))
        if answer.get("trouble"):
            rows.append(("problem", visible(str(answer["trouble"]))))
        if answer.get("held_deletions"):
            rows.append(("held back", held_back(str(answer["name"]), answer)))
        if answer.get("processing"):
            rows.append(("indexing", _indexing_line(answer)))
        kept = _kept_line(answer.get("kept_here") or {})
        if kept:
            rows.append(("kept here", kept))
        if answer.get("failed"):
            why = "the reasons are in .memdir/errors/, `memdir retry` lets it try again"
            rows.append(("failed", f"the server could not read {plural(int(answer['failed']), 'file')}; {why}"))
        if answer.get("conflicts"):
            rows.append(("conflicts", f"{plural(answer['conflicts'], 'file')} kept twice; see `{_conflicts_command(answer)}`"))
        if answer.get("memory_paths") is not None or answer.get("memory_paths_waiting") is not None:
            rows.append(("memories", visible(_memory_paths_line(answer))))
        if answer.get("cache_bytes") is not None:
            limit = answer.get("cache_limit_bytes")
            of_limit = f" (contents are kept up to {human_bytes(int(limit))})" if limit else ""
            rows.append(("local data", human_bytes(int(answer["cache_bytes"])) + of_limit))
        if answer.get("absent_files"):
            rows.append(("on server", _absent_line(answer)))
        if answer.get("lost"):
            lost = plural(int(answer["lost"]), "file")
            rows.append(("given up", f"{lost} that were deleted or replaced at the server before they came; see `memdir logs`"))
        if answer.get("last_synced_at"):
            rows.append(("last sync", visible(str(answer["last_synced_at"]))))
    rows.append(("log", out.name(answer["log_file"])))
    for label, text in rows:
        out.line(f"  {label:<10}  {text}")


def _indexing_line(answer: dict[str, Any]) -> str:
    from memdir.client.errors import SERVER_FULL

    files = plural(int(answer["processing"]), "file")
    if str(answer.get("trouble", "")).startswith(SERVER_FULL):
        return f"the server has still to read {files}: found by words first, or not yet"
    left, rate, left_s = (answer.get(name) for name in ("passages_left", "passages_per_s", "processing_left_s"))
    said = []
    if left:
        said.append(f"{plural(int(left), 'passage')} left")
    if left and rate:
        said.append(f"{rate:,.0f} a second")
    if left and left_s:
        said.append(f"about {human_duration(left_s)} more")
    how_far = f" ({', '.join(said)})" if said else ""
    return f"the server is reading {files}{how_far}: found by words first, by meaning in full when this line is gone"


def _memory_paths_line(answer: dict[str, Any]) -> str:
    from memdir.cli.mounts.mount_settings import said

    waiting = answer.get("memory_paths_waiting")
    if waiting is None:
        return said(answer["memory_paths"])
    why = answer.get("memory_paths_problem") or "the server has not been told yet"
    return f"{said(waiting)} ({why})"


def _absent_line(answer: dict[str, Any]) -> str:
    count = plural(int(answer["absent_files"]), "file")
    how = "being fetched in the background" if answer.get("prefetching") else "fetched when they are read"
    return f"the contents of {count} ({human_bytes(int(answer['absent_bytes']))}), {how}"


def _conflicts_command(answer: dict[str, Any]) -> str:
    from memdir.cli.targets import spoken

    return f"memdir conflicts {visible(spoken(str(answer['name']), str(answer['path'])))}"


def _kept_line(kept: dict[str, int]) -> str:
    """What stays on this machine; '' when nothing does."""
    parts = []
    if kept.get("folders"):
        where = plural(kept["folders"], "folder")
        parts.append(f"{plural(kept['files'], 'file')} in {where} that tools made, see `memdir ignore list`")
    if kept.get("special"):
        parts.append(plural(kept["special"], "socket, FIFO or device", "sockets, FIFOs and devices"))
    return "; ".join(parts)


def _server_line(answer: dict[str, Any]) -> str:
    server = answer.get("server")
    if not answer.get("sync"):
        return "none (--no-sync: everything stays on this machine's disk)"
    if not isinstance(server, dict):
        return "not found yet"
    if not server.get("url"):
        return visible(str(server.get("error") or "not found yet"))
    if server.get("online"):
        api = ", over the Supermemory API v3" if server.get("api") == "v3" else ""
        return f"{visible(str(server['url']))}, online{api}"
    since = f" since {server['since']}" if server.get("since") else ""
    reason = f": {server['error']}" if server.get("error") else ""
    return visible(f"{server['url']}, offline{since}{reason}")


def _queue_line(answer: dict[str, Any]) -> str:
    waiting = int(answer.get("queue_length") or 0)
    parked = int(answer.get("parked") or 0)
    text = "empty" if not waiting else f"{plural(waiting, 'change')} to push"
    return text + (f"; {parked} parked, see `memdir queue`" if parked else "")


COMMAND = Command(
    name="status",
    usage="[OPTIONS] [NAME]",
    description="Show how a mount is doing: its daemon, how many changes wait to be pushed, its server.",
    examples=[
        ("memdir status", "every mount"),
        ("memdir status notes --json", "one object: name, path, state, pid, uptime_s, queue_length, server, …"),
    ],
    exit_codes=[(0, "all is well"), (1, "a mount is dead, does not answer, or is not mounted")],
    configure=_configure,
    run=_run,
)
