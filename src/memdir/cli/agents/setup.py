"""What `memdir init` and `memdir deinit` share: choosing hosts, showing what changes, asking, doing it."""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.agents.hosts import HOSTS
from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Parser
from memdir.cli.text import is_terminal, plural, visible
from memdir.core.errors import StorageError, UsageError

if TYPE_CHECKING:
    from memdir.agents.installers.hosts import Reach
    from memdir.agents.installers.install import Change
    from memdir.cli.output import Output

_YES: Final = ("y", "yes")


def add_choice(parser: Parser, *, every: str) -> None:
    """The options that both commands have."""
    parser.add_argument(
        "--agent", metavar="HOSTS", type=_hosts, help=f"of {', '.join(HOSTS)}; commas between (default: {every})"
    )
    reach = parser.add_mutually_exclusive_group()
    reach.add_argument("--project", action="store_true", help="the settings of the repository around you")
    reach.add_argument("--user", action="store_true", help="your own settings, for all projects")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, change nothing")


def _hosts(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in HOSTS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown) or text!r} is none of {', '.join(HOSTS)}")
    return [host for host in HOSTS if host in names]


def reach_of(*, project: bool) -> Reach:
    """Whose settings are meant."""
    from memdir.agents.installers.hosts import Reach, project_root

    home = Path(os.path.expanduser("~"))
    return Reach(home=home, folder=project_root(os.getcwd()) if project else None, environ=os.environ)


def install(args: argparse.Namespace, out: Output) -> int:
    """`memdir init` for agent hosts."""
    from memdir.agents.installers.hosts import is_there, remark
    from memdir.agents.installers.install import apply, locked, plan
    from memdir.agents.installers.records import Records
    from memdir.core.paths import app_paths

    reach = reach_of(project=args.project)
    hosts = args.agent or [host for host in HOSTS if is_there(host, reach_of(project=False))]
    if not args.yes and not args.dry_run:
        _need_a_person("--yes" if args.agent else "--agent, and --yes")
    if args.agent is None and not args.yes and not args.dry_run:
        hosts, project = _chosen(hosts, project=args.project, asked=args.project or args.user)
        reach = reach_of(project=project)
    if not hosts:
        raise UsageError("no agent host is here", hint=f"name one: --agent {','.join(HOSTS)}")
    records = Records(app_paths())
    with locked(records):
        changes = plan(hosts, reach, records)
        notes = [note for change in changes for note in change.remarks]
        notes += [note for note in (remark(host, reach) for host in hosts) if note] + _warnings(hosts, reach)
        done = _decided(changes, args, out, question="Write these changes?")
        if done:
            apply(changes, records)
    _report(changes, out, done="`memdir deinit` brings them back as they were" if done else None, hosts=hosts, notes=notes)
    return EXIT_OK if done or args.dry_run or not any(change.changes for change in changes) else EXIT_NOTHING


def check(args: argparse.Namespace, out: Output) -> int:
    """`memdir init --check`."""
    from memdir.agents.installers.hosts import is_there
    from memdir.agents.installers.install import check as states

    reach = reach_of(project=args.project)
    hosts = args.agent or [host for host in HOSTS if is_there(host, reach_of(project=False))]
    found = states(hosts, reach)
    notes = _warnings(hosts, reach)
    if out.json:
        files = [{"host": state.host, "path": state.path, "state": state.state} for state in found]
        out.document({"files": files, "notes": notes})
    else:
        for state in found:
            kind = "ok" if state.state == "set up" else "fail"
            out.line(f"{state.host}: {out.name(state.path)}: {out.style(visible(state.state), kind)}")
        if not found:
            out.note(f"no agent host is here; `memdir init --agent {','.join(HOSTS)}` sets up those that you name")
        for note in notes:
            out.note(note)
    return EXIT_OK if found and all(state.state == "set up" for state in found) else EXIT_NOTHING


def uninstall(args: argparse.Namespace, out: Output) -> int:
    """`memdir deinit`."""
    from memdir.agents.installers.install import apply, locked, plan_removal
    from memdir.agents.installers.records import Records
    from memdir.core.paths import app_paths

    reach = reach_of(project=args.project) if args.project or args.user else None
    if not args.yes and not args.dry_run:
        _need_a_person("--yes")
    records = Records(app_paths())
    with locked(records):
        changes, problems = plan_removal(records, hosts=args.agent, reach=reach)
        done = bool(changes) and _decided(changes, args, out, question="Take this out?")
        if done:
            apply(changes, records)
    _report(changes, out, done="what memdir put there is out" if done else None, hosts=args.agent or [], notes=[])
    if problems:
        raise StorageError("; ".join(problems), hint="mend the file and call `memdir deinit` again")
    return EXIT_OK if done or (args.dry_run and changes) else EXIT_NOTHING


def _chosen(there: Sequence[str], *, project: bool, asked: bool) -> tuple[list[str], bool]:
    default = ",".join(there) or HOSTS[0]
    try:
        hosts = _hosts(_ask(f"Which hosts ({', '.join(HOSTS)})? [{default}] ") or default)
    except argparse.ArgumentTypeError as error:
        raise UsageError(str(error), hint="see `memdir init --help`") from None
    if not asked:
        project = _ask("For you, in all projects, or for this project? [user/project] ").lower() in ("p", "project")
    return hosts, project


def _need_a_person(otherwise: str) -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError("there is nobody to ask here", hint=f"give {otherwise}, or --dry-run to see what would change")


def _ask(question: str) -> str:
    sys.stdout.flush()
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def _decided(changes: Sequence[Change], args: argparse.Namespace, out: Output, *, question: str) -> bool:
    """Show what changes, and whether it is to be done."""
    if not out.json:
        for change in changes:
            _show(change, out)
    if args.dry_run:
        return False
    if args.yes or not any(change.changes for change in changes):
        return True
    return _ask(f"{question} [y/N] ").lower() in _YES


def _show(change: Change, out: Output) -> None:
    for line in _diff(change):
        kind = {"+": "ok", "-": "fail", "@": "dim"}.get(line[:1], "")
        shown = visible(line)
        out.line(out.style(shown, kind) if kind else shown)


def _diff(change: Change) -> Iterable[str]:
    before, after = (
        [] if data is None else data.decode("utf-8", "replace").splitlines() for data in (change.before, change.after)
    )  # fmt: skip
    names = ("/dev/null" if change.before is None else change.path, "/dev/null" if change.after is None else change.path)
    return difflib.unified_diff(before, after, *names, n=2, lineterm="")


def _report(changes: Sequence[Change], out: Output, *, done: str | None, hosts: Sequence[str], notes: Sequence[str]) -> None:
    """`done`: what to say of the changes that were made; None when none were."""
    rows = [(change, _state(change)) for change in changes]
    if out.json:
        files = [{"path": change.path, "state": state, "diff": "\n".join(_diff(change))} for change, state in rows]
        out.document({"hosts": list(hosts), "done": done is not None, "files": files, "notes": list(notes)})
        return
    moved = sum(change.changes for change in changes)
    if not changes:
        out.note("nothing of memdir's is there")
    elif not moved:
        out.note("all is as it should be; nothing was changed")
    elif done is not None:
        out.note(f"{plural(moved, 'file')} changed; {done}")
    else:
        out.note("nothing was changed")
    for note in notes:
        out.note(note)


def _state(change: Change) -> str:
    if not change.changes:
        return "unchanged"
    if change.before is None:
        return "made"
    return "deleted" if change.after is None else "changed"


def _warnings(hosts: Sequence[str], reach: Reach) -> list[str]:
    """What keeps the hook from running though it is set up."""
    from memdir.agents.installers.commands import HOOK_SCRIPT
    from memdir.agents.installers.switches import hooks_turned_off

    found = [sentence for host in hosts for sentence in hooks_turned_off(host, reach)]
    if reach.shared and shutil.which(HOOK_SCRIPT) is None:
        found.append(f"{HOOK_SCRIPT} is not on your PATH: until it is, the hooks of a project do nothing")
    return found
