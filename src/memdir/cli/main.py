"""`memdir`: find the command, run it, turn what happens into an exit code.

Exit codes are grep's: 0 done or found, 1 nothing found (or not finished, see each command), 2 error; 130 after Ctrl-C.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from memdir.cli.command import (
    EXIT_BROKEN_PIPE,
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_OK,
    Command,
    wants_json,
)
from memdir.core.errors import MemdirError, UsageError

COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "mount": ("mounts.mount", "COMMAND", "mount a memory as a directory"),
    "unmount": ("mounts.unmount", "COMMAND", "push what is left, unmount, end the daemon"),
    "list": ("mounts.list", "COMMAND", "list the mounts of this user"),
    "status": ("mounts.status", "COMMAND", "show how a mount, or every mount, is doing"),
    "grep": ("search.grep", "COMMAND", "search files by meaning, or for exact bytes"),
    "sh": ("shell", "COMMAND", "a shell in a memory, without a mount"),
    "hook": ("agents.hook", "COMMAND", "give an agent host what memory knows of a prompt"),
    "init": ("agents.init", "COMMAND", "give agent hosts a memory; make grep in a mount a search by meaning"),
    "deinit": ("agents.deinit", "COMMAND", "take everything out of agent hosts again"),
    "sync": ("sync.sync", "COMMAND", "push changes now; with --wait until all is searchable"),
    "queue": ("sync.queue", "COMMAND", "show what waits, since when and why"),
    "retry": ("sync.retry", "COMMAND", "push parked changes again"),
    "ignore list": ("mounts.ignore", "LIST", "show what of a mount stays on this machine"),
    "ignore add": ("mounts.ignore", "ADD", "keep more on this machine, or bring something back"),
    "ignore remove": ("mounts.ignore", "REMOVE", "take such a pattern back"),
    "ignore why": ("mounts.ignore", "WHY", "say whether a path stays on this machine, and why"),
    "conflicts": ("sync.conflicts", "LIST", "list files that two sides changed differently"),
    "conflicts show": ("sync.conflicts", "SHOW", "show how the two sides differ"),
    "conflicts resolve": ("sync.conflicts", "RESOLVE", "keep one side, both, or what you made of them"),
    "logs": ("mounts.logs", "COMMAND", "show the log of a mount or of the server"),
    "history": ("history.history", "COMMAND", "show what a file was before, what changed in a folder, what was deleted"),
    "restore": ("history.restore", "COMMAND", "bring a former content of a file back, or a folder to a moment"),
    "undelete": ("history.undelete", "COMMAND", "bring back what was deleted"),
    "export": ("history.export", "COMMAND", "write a memory, or a folder of one, as a plain archive"),
    "import": ("history.import_archive", "COMMAND", "take an archive over into a memory"),
    "memory store": ("memory.memory", "STORE", "remember something for agents"),
    "memory search": ("memory.memory", "SEARCH", "find what is remembered: notes and facts"),
    "memory list": ("memory.memory", "LIST", "list what is remembered: notes and facts"),
    "memory show": ("memory.memory", "SHOW", "show one memory"),
    "memory edit": ("memory.change", "EDIT", "change what a memory says, or its project"),
    "memory tag": ("memory.change", "TAG", "add tags to a memory, or take some off"),
    "memory delete": ("memory.change", "DELETE", "delete memories for good"),
    "memory review": ("memory.review", "REVIEW", "decide what waits: proposals, what is not trusted, contradictions"),
    "memory confirm": ("memory.review", "CONFIRM", "say that memories hold"),
    "memory why": ("memory.why", "COMMAND", "show which lines a fact of profile.md comes from"),
    "memory graph": ("memory.graph", "COMMAND", "show what links a person or a project to others"),
    "memory history": ("memory.review", "HISTORY", "show what a memory said before"),
    "memory stats": ("memory.memory", "STATS", "show how much agents remember"),
    "memory export": ("memory.files", "EXPORT", "write an agent's memories into a file"),
    "memory import": ("memory.files", "IMPORT", "take memories over from a file, also of other systems"),
    "forget": ("memory.forget", "COMMAND", "forget something for good, everywhere"),
    "forget verify": ("memory.forget", "VERIFY", "prove that something is forgotten"),
    "traces list": ("traces.traces", "LIST", "show what was done with files"),
    "traces status": ("traces.traces", "STATUS", "show whether it is recorded, and how much was"),
    "traces watch": ("traces.traces", "WATCH", "record what happens in ordinary folders"),
    "traces import": ("traces.traces", "IMPORT", "take over what was recorded elsewhere"),
    "traces pause": ("traces.traces", "PAUSE", "record nothing for a while"),
    "traces resume": ("traces.traces", "RESUME", "record again"),
    "traces forget": ("traces.traces", "FORGET", "delete what was recorded"),
    "habits": ("traces.habits", "COMMAND", "show how you work with files"),
    "habits drift": ("traces.habits", "DRIFT", "show how that changed"),
    "habits suggest": ("traces.habits", "SUGGEST", "show where a new file would go"),
    "habits procedures": ("traces.habits", "PROCEDURES", "show what you do again and again"),
    "research": ("research.start", "COMMAND", "research a topic: a knowledge base from pages, then a report"),
    "research status": ("research.workspace", "STATUS", "show where a research stands"),
    "research check": ("research.workspace", "CHECK", "check citations, notes and report without a model"),
    "research archive": ("research.archive", "COMMAND", "archive pages for a research of one's own"),
    "research report": ("research.workspace", "REPORT", "print the report of a research"),
    "research export": ("research.workspace", "EXPORT", "write a report as HTML, Markdown, DOCX or PDF"),
    "research note": ("research.workspace", "NOTE", "tell a running research something"),
    "research pause": ("research.workspace", "PAUSE", "stop a research before its next answer"),
    "cost": ("memory.cost", "COMMAND", "what an agent's memory costs and saves in tokens"),
    "server run": ("server.server", "RUN", "run the local server in the foreground"),
    "server start": ("server.server", "START", "start the local server in the background"),
    "server stop": ("server.server", "STOP", "stop the local server"),
    "server status": ("server.server", "STATUS", "show whether the local server runs, and where"),
    "server migrate": ("server.upkeep", "MIGRATE", "bring the server's database up to date"),
    "server backup": ("server.upkeep", "BACKUP", "write all that the server keeps into one file"),
    "server restore": ("server.upkeep", "RESTORE", "put a backup into the server's store"),
    "server check": ("server.upkeep", "CHECK", "check, and repair, the server's store"),
    "server reindex": ("server.reindex", "COMMAND", "make passages, memories and indexes anew"),
    "server vacuum": ("server.upkeep", "VACUUM", "give space back that the server does not need"),
    "server worker": ("server.worker", "COMMAND", "take documents through the pipeline, beside the servers"),
    "server jobs": ("server.jobs", "COMMAND", "show work on documents that waits, runs, or was given up"),
    "server jobs retry": ("server.jobs", "RETRY", "put work that was given up back into the queue"),
    "server key create": ("server.keys", "CREATE", "make an API key; it is shown once"),
    "server key list": ("server.keys", "LIST", "list API keys"),
    "server key revoke": ("server.keys", "REVOKE", "end an API key now"),
    "server key rotate": ("server.keys", "ROTATE", "put a new API key in the place of an old one"),
    "server user add": ("server.people", "USER_ADD", "add a user to an organisation"),
    "server user list": ("server.people", "USER_LIST", "list the users of an organisation"),
    "server user remove": ("server.people", "USER_REMOVE", "remove a user, and end their keys"),
    "server org add": ("server.people", "ORG_ADD", "add an organisation"),
    "server org list": ("server.people", "ORG_LIST", "list organisations, and what they hold"),
    "server org remove": ("server.people", "ORG_REMOVE", "remove an organisation that holds nothing"),
    "server audit": ("server.audit", "COMMAND", "show who did what, when, with which key"),
    "login": ("server.login", "LOGIN", "use a server elsewhere, with a key for it"),
    "whoami": ("server.login", "WHOAMI", "show which server is used, as whom, and what the key opens"),
    "logout": ("server.login", "LOGOUT", "forget the key of a server elsewhere"),
    "doctor": ("mounts.doctor", "COMMAND", "check everything a mount needs, and say how to repair it"),
    "recover": ("mounts.recover", "COMMAND", "put right what a crash or a hang has left behind"),
    "fsck": ("mounts.fsck", "COMMAND", "check, and repair, the stored filesystem of a memory"),
    "mcp": ("agents.mcp", "COMMAND", "serve agent memories to hosts that speak MCP"),
}
"""Command -> module in memdir.cli, the `Command` in it, one line for the overview."""

PLUGINS: Final = {"bench": "pip install memdir-bench"}
"""First words of commands that a distribution beside memdir brings, and how to get it. Its entry point of the group
`memdir.commands` is a dictionary like COMMANDS, with the whole names of modules."""

ALIASES: Final = {"umount": "unmount", "ls": "list", "search": "grep", "versions": "history"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. Prints; raises nothing but what ends the interpreter."""
    from memdir.cli.output import prepare_streams

    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["hook"] and not {"-h", "--help"} & {*arguments}:
        from memdir.agents.hook import main as hook

        hook(arguments[1:])  # before any parser: no word, and no error, may end it with another code than 0
    debug = "--debug" in arguments or os.environ.get("MEMDIR_DEBUG", "") not in ("", "0")
    prepare_streams()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _leave_broken_pipe()
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return EXIT_INTERRUPTED
    except SystemExit as leaving:  # argparse after --help
        sys.stdout.flush()
        return leaving.code if isinstance(leaving.code, int) else EXIT_OK
    except MemdirError as error:
        if debug:
            _print_traceback()
        return _report(error.message, error.hint, json=wants_json(arguments))
    except Exception as error:  # noqa: BLE001  the last line of defence: say it in one line, keep the traceback in a file
        if debug:
            _print_traceback()
        return _report(*(_environment(error) or _unexpected(error, arguments)), json=wants_json(arguments))


def all_commands() -> dict[str, tuple[str, str, str]]:
    """COMMANDS and what is installed beside it."""
    from importlib.metadata import entry_points

    found = dict(COMMANDS)
    for plugin in entry_points(group="memdir.commands"):
        found.update(plugin.load())
    return found


def load_command(name: str) -> Command:
    """Import the module of a command and return its definition."""
    import importlib

    module_name, attribute, _ = COMMANDS.get(name) or all_commands()[name]
    if name in COMMANDS:
        module_name = f"memdir.cli.{module_name}"
    found = getattr(importlib.import_module(module_name), attribute)
    if not isinstance(found, Command):
        raise TypeError(f"{module_name}.{attribute} is not a Command")
    return found


def overview() -> str:
    """`memdir --help`."""
    known = all_commands()
    width = max(map(len, known))
    lines = ["usage: memdir COMMAND [OPTIONS]", "", "Memory as a directory: mount it, write files, search them by meaning.", ""]
    lines += ["commands:"]
    lines += [f"  {name:<{width}}  {summary}" for name, (_, _, summary) in known.items()]
    lines += [
        "",
        "options:",
        "  --version  show the version and exit",
        "  -h, --help  show this help and exit; `memdir COMMAND --help` explains one command",
    ]
    return "\n".join(lines)


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help", "help") and len(arguments) == 1:
        print(overview())
        return EXIT_OK
    if first in ("-V", "--version"):
        return _print_version(arguments[1:])
    if first == "help":
        arguments = [*arguments[1:], "--help"]
    if not arguments:
        raise UsageError("no command given", hint="see `memdir --help`")
    from memdir.cli.mounts import mount_helper

    if first not in COMMANDS and mount_helper.is_helper_call(arguments):
        return mount_helper.run(arguments)
    known = all_commands() if first in PLUGINS else COMMANDS
    name, rest = _find_command(arguments, known)
    if name is None:
        print(_group_overview(rest[0], known))
        return EXIT_OK
    command = load_command(name)
    parsed = command.parser().parse_args(rest)
    if parsed.credentials is not None:
        os.environ["MEMDIR_CREDENTIALS"] = (
            parsed.credentials if parsed.credentials == "local" else os.path.abspath(parsed.credentials)
        )
    from memdir.cli.output import Output

    return command.run(parsed, Output(json=parsed.json))


def _print_version(rest: list[str]) -> int:
    from memdir import __version__

    if "--json" in rest:
        print(f'{{"version": "{__version__}"}}')
    else:
        print(f"memdir {__version__}")
    return EXIT_OK


def _find_command(arguments: list[str], commands: Mapping[str, tuple[str, str, str]]) -> tuple[str | None, list[str]]:
    """The command's name and the arguments behind it; None and the group's name when the help of a group is wanted."""
    word = ALIASES.get(arguments[0], arguments[0])
    for length in (3, 2, 1):
        name = " ".join([word, *arguments[1:length]])
        if name in commands and len(arguments) >= length:
            return name, arguments[length:]
    words = [word]
    while len(words) < len(arguments) and _group(" ".join([*words, arguments[len(words)]]), commands):
        words.append(arguments[len(words)])
    group, rest = _group(" ".join(words), commands), arguments[len(words) :]
    if not group:
        if word in PLUGINS:
            raise UsageError(f"the commands of `memdir {word}` are not installed", hint=PLUGINS[word])
        known = [
            *(name for name in commands if " " not in name),
            *sorted({name.split()[0] for name in commands if " " in name} | {*PLUGINS}),
        ]
        if word.startswith("-"):
            raise UsageError(f"the option {word} stands before the command", hint="write `memdir COMMAND [OPTIONS]`")
        raise UsageError(f"there is no command {word!r}", hint=_did_you_mean(word, [*known, *ALIASES]))
    prefix = " ".join(words)
    if rest and rest[0] in ("-h", "--help"):
        return None, [prefix]
    if not rest or rest[0].startswith("-"):
        raise UsageError(f"memdir {prefix} needs one of: {', '.join(group)}", hint=f"see `memdir {prefix} --help`")
    raise UsageError(
        f"there is no command {prefix + ' ' + rest[0]!r}",
        hint=_did_you_mean(rest[0], [name.split()[0] for name in group], prefix=prefix + " "),
    )


def _group(prefix: str, commands: Iterable[str]) -> list[str]:
    """What may follow `prefix`, such as `key create` and `start` for `server`."""
    return [name[len(prefix) + 1 :] for name in commands if name.startswith(prefix + " ")]


def _did_you_mean(word: str, known: list[str], *, prefix: str = "") -> str:
    import difflib

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean `memdir {prefix}{ALIASES.get(close[0], close[0])}`?"
    return "see `memdir --help`"


def _group_overview(group: str, commands: Mapping[str, tuple[str, str, str]]) -> str:
    names = [name for name in commands if name.startswith(group + " ")]
    width = max(map(len, names))
    lines = [f"usage: memdir {group} COMMAND [OPTIONS]", "", "commands:"]
    return "\n".join(lines + [f"  {name:<{width}}  {commands[name][2]}" for name in names])


def _report(message: str, hint: str, *, json: bool) -> int:
    from memdir.cli.output import Output
    from memdir.cli.text import visible

    try:
        if json:
            Output(json=True).document({"error": message, "hint": hint})
            sys.stdout.flush()
        else:
            sys.stdout.flush()
            sys.stderr.write(f"memdir: {visible(message)}\n")
            if hint:
                sys.stderr.write(f"  hint: {visible(hint)}\n")
    except BrokenPipeError:
        return _leave_broken_pipe()
    return EXIT_ERROR


def _environment(error: Exception) -> tuple[str, str] | None:
    """What the machine refuses is no bug: a full or read-only disk, somebody else's folder, a file where a folder belongs."""
    from memdir.core.paths import explained

    if type(error).__name__ == "FullError":  # SQLite's; importing apsw to ask for it costs more than the whole command
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    found = explained(error) if isinstance(error, OSError) else None
    return None if found is None else (found.message, found.hint)


def _unexpected(error: Exception, arguments: list[str]) -> tuple[str, str]:
    """One sentence and where the traceback went: `cli-error.log` in the state folder, which holds the latest one only."""
    import traceback

    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    try:
        from memdir.core.paths import app_paths, write_private

        file = app_paths().state_dir / "cli-error.log"
        command = " ".join(arguments[:1])
        write_private(file, f"memdir {command}\n{traceback.format_exc()}".encode("utf-8", "backslashreplace"))
    except (OSError, MemdirError):
        return f"unexpected error: {text}", "run it again with --debug to see where"
    return f"unexpected error: {text}", f"the traceback is in {file}"


def _print_traceback() -> None:
    import traceback

    traceback.print_exc()


def _leave_broken_pipe() -> int:
    """The reader went away (`| head`). Point the stream elsewhere, so that the interpreter's last flush is quiet too."""
    try:
        fd = sys.stdout.fileno()
    except (OSError, ValueError):
        return EXIT_BROKEN_PIPE
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, fd)
    os.close(null)
    return EXIT_BROKEN_PIPE


if __name__ == "__main__":
    sys.exit(main())
