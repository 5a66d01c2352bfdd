"""The hook: agent hosts run it on every prompt, and what it prints becomes part of the model's context.

Reads the host's JSON on standard input, asks the server for a block of memories, prints it in the host's shape. It never fails
a prompt: whatever goes wrong, it prints nothing, writes one line into `hook.log` in the state folder and exits with 0, and
within 3 s of its start a watchdog ends the process, whatever it waits for. Every import counts: see docs/agent-hosts.md.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

from memdir.agents import hookcall, hosts
from memdir.agents.project import current_project
from memdir.core.places import config_and_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, NoReturn

LIMIT_MS: Final = 3_000
"""From exec to exit. Usually it takes 50; a machine under load answers late, and hosts wait for seconds."""
_GIVE_UP_MS: Final = 2_800
"""The socket's own deadline: it can say what was waited for."""
_SAY_SO_MS: Final = 2_900
_LEAVE_MS: Final = 2_950

ENV_CAPTURE: Final = "MEMDIR_CAPTURE"
"""`off`: sessions are not read for what should be remembered."""
TAGS: Final = ("memdir-memory", "supermemory")
CONTEXT_MAX_CHARS: Final = 8_000
"""As `api.agents.CONTEXT_MAX_CHARS`. Claude Code shows no more than 10,000."""
_PROMPT_MAX_CHARS: Final = 32_768
"""Of a longer one the beginning and the end: the question stands before or behind what was pasted."""
_INPUT_MAX_BYTES: Final = 2 << 20
_LOG_MAX_BYTES: Final = 1 << 18
_LINE_MAX_CHARS: Final = 500


class _Options:
    """The words behind `memdir hook`."""

    __slots__ = ("container", "host", "plain", "tag")

    def __init__(self) -> None:
        self.host: str | None = None
        self.tag = TAGS[0]
        self.container = os.environ.get("MEMDIR_AGENT_CONTAINER", "").strip() or "agents"
        self.plain = False


def main(arguments: list[str] | None = None) -> NoReturn:
    """Ends the process, always with 0: another code would show the user an error, or keep the prompt from the model."""
    started_s = time.monotonic() - _age_s()
    for after_ms, last in ((_SAY_SO_MS, False), (_LEAVE_MS, True)):
        _thread.start_new_thread(_end, (started_s + after_ms / 1000, last))
    try:
        _run(sys.argv[1:] if arguments is None else arguments, started_s)
    except BaseException as error:  # noqa: BLE001  no prompt fails because of its memory
        _note(str(error) if isinstance(error, (hookcall.HookCallError, ValueError)) else f"{type(error).__name__}: {error}")
    os._exit(0)


def _run(arguments: list[str], started_s: float) -> None:
    options = _options(arguments)
    for stream in (0, 1):
        os.fstat(stream)  # one that is closed would be somebody else's file in a moment
    event = hosts.event_of(hookcall.parsed(_input()), options.host)
    if event is None:
        return
    if event.name == hosts.CAPTURE:
        if event.transcript and os.environ.get(ENV_CAPTURE, "").strip() not in ("0", "off", "no"):
            hookcall.spawn(
                ["memory", "import", "--from", event.host, "--container", options.container, "--json", event.transcript]
            )
        return
    project = current_project(event.cwd)
    parent = None if project is None else project.parent
    body = hookcall.written(
        {
            "containerTag": options.container,
            "event": event.name,
            "prompt": _ends_of(event.prompt),
            "project": None if project is None else project.name,
            "projectKeys": None if project is None else project.keys,
            "parent": None if parent is None else parent.name,
            "parentKeys": None if parent is None else parent.keys,
            "sessionId": event.session_id,
            "renewed": event.renewed or None,
            "host": event.host,
            "tag": options.tag,
            "maxChars": CONTEXT_MAX_CHARS,
            "maxTokens": hosts.TOKENS_MAX[event.host],
            "withinMs": max(1, int((started_s - time.monotonic()) * 1000) + _GIVE_UP_MS),
        }
    )
    found = hookcall.ask(body, timeout_s=max(0.001, started_s + _GIVE_UP_MS / 1000 - time.monotonic()))
    context = "" if found is None else found.get("context")
    if not isinstance(context, str) or len(context) > CONTEXT_MAX_CHARS:
        raise ValueError("the server's answer holds no block that fits")
    paths = [] if found is None else found.get("paths")
    if context and paths and event.cwd and isinstance(paths, list):
        context = _with_missing(context, [path for path in paths if isinstance(path, str)], event.cwd, options.tag)
    if context:
        _print(hosts.answer(event, context, plain=options.plain).encode("utf-8", "replace"))


def _ends_of(prompt: str) -> str:
    half = _PROMPT_MAX_CHARS // 2
    return prompt if len(prompt) <= _PROMPT_MAX_CHARS else f"{prompt[: half - 1]}\n{prompt[-half:]}"


def _with_missing(context: str, paths: list[str], cwd: str, tag: str) -> str:
    """The block, saying which files that it names are not there."""
    from memdir.agents.checkout import missing

    gone = missing(paths, cwd)
    end = f"</{tag}>"
    said = f"(Named above and not in this checkout: {', '.join(gone)})\n"
    if not gone or not context.endswith(end) or len(context) + len(said) > CONTEXT_MAX_CHARS:
        return context
    return context[: -len(end)] + said + end


def _options(arguments: list[str]) -> _Options:
    """ValueError for a word that is none of ours."""
    options = _Options()
    words = iter(arguments)
    for word in words:
        name, given, value = word.partition("=")
        if name in ("--json", "--debug"):
            continue
        if name == "--plain":
            options.plain = True
            continue
        if not given:
            value = next(words, "")
        if name == "--host" and value in hosts.HOSTS:
            options.host = value
        elif name == "--tag" and value in TAGS:
            options.tag = value
        elif name == "--container" and value:
            options.container = value
        else:
            raise ValueError(f"the hook does not know {name} {value}".rstrip())
    return options


def _input() -> str:
    """ValueError when there is nothing, or too much."""
    pieces = []
    size = 0
    while size <= _INPUT_MAX_BYTES:
        piece = os.read(0, 1 << 20)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    if size > _INPUT_MAX_BYTES:
        raise ValueError(f"the host sent more than {_INPUT_MAX_BYTES >> 20} MiB")
    text = b"".join(pieces).decode("utf-8", "replace").removeprefix("\ufeff")
    if not text.strip():
        raise ValueError("the host sent nothing on standard input")
    return text


def _print(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


# --- time --------------------------------------------------------------------------------------------------------------


def _age_s() -> float:
    """How long this process has been there: the interpreter's own start counts too. From proc(5), field 22, in ticks of 10 ms;
    0 where that makes no sense (another boot clock in a container)."""
    try:
        descriptor = os.open("/proc/self/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fields = os.read(descriptor, 4096).rpartition(b")")[2].split()
        finally:
            os.close(descriptor)
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
    return age_s if 0 <= age_s < LIMIT_MS / 1000 else 0.0


def _end(at_s: float, last: bool) -> None:
    """End the process at `at_s` (monotonic). Twice: the first one says so, which may itself take forever."""
    lock = _thread.allocate_lock()
    lock.acquire()
    lock.acquire(timeout=max(0.0, at_s - time.monotonic()))
    if not last:
        _note(f"it took more than {_SAY_SO_MS} ms; the prompt went on without memories")
    os._exit(0)


# --- the log -----------------------------------------------------------------------------------------------------------


def _note(text: str) -> None:
    """One line in `hook.log`, which begins anew at 256 KiB; for a person at a terminal on standard error too."""
    shown = "".join(character if character.isprintable() else " " for character in text[:_LINE_MAX_CHARS])
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {shown}\n".encode("utf-8", "replace")
    try:
        _, state = config_and_state(os.environ)
        os.makedirs(state, mode=0o700, exist_ok=True)
        file = state + "/hook.log"
        if os.path.exists(file) and os.stat(file).st_size > _LOG_MAX_BYTES:
            os.replace(file, file + ".1")
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
        if os.isatty(2):
            os.write(2, line)
    except OSError:
        return  # a log that cannot be written is no reason to fail a prompt, and there is nobody else to tell
