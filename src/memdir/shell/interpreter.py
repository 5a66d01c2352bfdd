"""Runs scripts of bash in this process: bashkit's interpreter (MIT, the extra `shell`) over our files.

No process, no kernel module and no mount is used, and nothing of this machine is seen: files outside the memory are the
interpreter's own, in memory, and go with it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import resource
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from memdir.core.errors import MemdirError, UsageError
from memdir.core.limits import MIB
from memdir.shell.port import FileSystemPort

if TYPE_CHECKING:
    from memdir.shell.files import Files

_STACK_BYTES: Final = 1024 * MIB
"""Of the threads that parse and interpret, address space only: both go as deep as a script nests, and the stack of an ordinary
thread (2 and 8 MiB) would end there, and the process with it."""
_ENV_STACK: Final = "RUST_MIN_STACK"
"""The interpreter's own threads take their size from there."""
_PARSED_ASIDE_BYTES: Final = 100_000
_deepened: Final[list[bool]] = []
_SMALL_STACK_BYTES: Final = 64 * MIB
"""Where so much address space cannot be had."""
_WATCH_S: Final = 0.02
_PAGE_BYTES: Final = resource.getpagesize()
_SCRIPT_MAX_BYTES: Final = MIB
TIMED_OUT: Final = 124
"""The exit code of a script that had no time left, as of timeout(1)."""
WRONG_SYNTAX: Final = 2
"""The exit code of a script that is none, as bash has it."""
_TIMEOUT_SAID: Final = "execution timeout"
_PARSE_ERROR: Final = "parse error"
_END_JOBS: Final = "kill $(jobs -p) 2> /dev/null; disown -a"
_INCOMPLETE: Final = ("unexpected end", "unexpected EOF", "unterminated")
_GOES_ON: Final = re.compile(r"(?:\\|&&|\|\|)\s*\Z")
_HERE: Final = re.compile(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1")
_stack_size = threading.Lock()
"""`threading.stack_size` is the process's."""


class ShellMissingError(MemdirError):
    """The interpreter is not installed."""

    def __init__(self) -> None:
        super().__init__("the in-process shell needs the package bashkit", hint="pip install 'memdir[shell]'")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLimits:
    """What one script may use. What goes beyond ends it with an error that says so."""

    timeout_s: float = 60.0
    commands: int = 100_000
    loop_iterations: int = 100_000
    """Of one loop."""
    output_chars: int = MIB
    """Of standard output and of standard error; what is more is cut off."""
    scratch_bytes: int = 64 * MIB
    """Files outside the memory, such as in /tmp."""
    memory_bytes: int = 1024 * MIB
    """How much the process may grow while a script runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellResult:
    """What a script printed (up to the limit; bytes that are no UTF-8 come as U+FFFD), and how it ended."""

    stdout: str
    stderr: str
    exit_code: int
    truncated: bool = False
    """There was more output."""


def check_installed() -> None:
    """ShellMissingError when the interpreter is not here."""
    if importlib.util.find_spec("bashkit") is None:
        raise ShellMissingError


_CANCELLED: Final = ShellResult(stdout="", stderr="cancelled\n", exit_code=130)


class Run:
    """One script on its way: `future` is told how it ended."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.cancelled = threading.Event()
        self.future: Future[ShellResult] = Future()
        self.future.set_running_or_notify_cancel()  # it is not the future that can be cancelled, but the script


class _Seen:
    """What a script has printed so far: all that is known of it when it is ended."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = {"out": most, "err": most}
        self.out: list[str] = []
        self.err: list[str] = []

    def add(self, out: str, err: str) -> None:
        """Called by the interpreter with each piece."""
        for kept, text, name in ((self.out, out, "out"), (self.err, err, "err")):
            if text and self._left[name] > 0:
                kept.append(text)
                self._left[name] -= len(text)

    def result(self, stdout: str, stderr: str, exit_code: int) -> ShellResult:
        """As the caller gets it."""
        is_cut = min(self._left.values()) < 0 or max(len(stdout), len(stderr)) > self._most
        return ShellResult(stdout=stdout[: self._most], stderr=stderr[: self._most], exit_code=exit_code, truncated=is_cut)


class Interpreter:
    """One shell: variables, functions and the working directory last from script to script. Scripts run one after the other."""

    def __init__(
        self,
        mounts: Mapping[str, Files],
        *,
        cwd: str,
        env: Mapping[str, str],
        limits: ShellLimits,
        commands: Mapping[str, Callable[[Any], Any]],
        network: Sequence[str] = (),
    ) -> None:
        """`mounts` says where each filesystem stands, `/notes`; `commands` are Python's, by name; `network` the beginnings of
        the URLs that curl may ask for. ShellMissingError."""
        check_installed()
        from bashkit import Bash, BashError, ExecutionProfile, FileSystem

        self._refusal = BashError
        self._limits = limits
        self._bash = Bash(
            username=env.get("USER", "user"),
            hostname="memdir",
            cwd=cwd,
            env=dict(env),
            max_commands=limits.commands,
            max_loop_iterations=limits.loop_iterations,
            max_memory=limits.scratch_bytes,
            timeout_seconds=limits.timeout_s,
            profile=ExecutionProfile.Interactive,  # the others count the commands of a whole session
            custom_builtins=dict(commands),
            network={"allow": list(network)} if network else None,
        )
        for place, memory in mounts.items():
            self._bash.mount(place, FileSystem.from_capsule(FileSystemPort(memory).capsule))
        _deepen_threads(self._bash)
        self._bash.execute_sync((files("memdir.shell") / "prelude.sh").read_text())
        self._one_by_one = threading.Lock()
        """Held by the script that runs."""
        self._turning = threading.Lock()
        """Around what says which one that is."""
        self._running: Run | None = None
        self._is_ended = False

    def prepared(self, script: str) -> Run:
        """The script, ready to be started; UsageError for one past 1 MiB or with NUL."""
        if len(script.encode("utf-8", "surrogatepass")) > _SCRIPT_MAX_BYTES:
            raise UsageError("the script is longer than 1 MiB", hint="write it into a file of the memory and `source` that")
        if "\0" in script:
            raise UsageError("a script cannot contain NUL")
        return Run(script)

    def start(self, run: Run) -> None:
        """Run it in a thread of its own, after those that were started before."""
        _start_deep(lambda: self._take_turn(run))

    def cancel(self, run: Run) -> None:
        """End a script before its next command; one whose turn has not come is not run at all. Returns at once."""
        run.cancelled.set()
        with self._turning:
            if self._running is run:
                self._bash.cancel()

    def end(self) -> None:
        """End the script that runs, and run no other."""
        with self._turning:
            self._is_ended = True
            if self._running is not None:
                self._running.cancelled.set()
                self._bash.cancel()

    def is_complete(self, script: str) -> bool:
        """Whether nothing is missing at the end of the script."""
        try:
            self._bash.analyze(script)
        except self._refusal as error:
            return not any(words in str(error) for words in _INCOMPLETE)
        documents = (match.group(2) for match in _HERE.finditer(script))
        ended = {line.strip() for line in script.split("\n")[1:]}
        return not _GOES_ON.search(script) and all(end in ended for end in documents)

    def cwd(self) -> str:
        """The working directory."""
        return str(self._bash.shell_state().cwd)

    def _take_turn(self, run: Run) -> None:
        with self._one_by_one:
            with self._turning:
                if self._is_ended:
                    run.cancelled.set()
                self._running = run
            try:
                run.future.set_result(_CANCELLED if run.cancelled.is_set() else self._run(run))
            except BaseException as error:  # noqa: BLE001  handed to whoever waits
                run.future.set_exception(error)
            finally:
                with self._turning:
                    self._running = None
                    self._bash.clear_cancel()

    def _run(self, run: Run) -> ShellResult:
        ended, full = threading.Event(), threading.Event()
        watch = threading.Thread(target=self._watch, args=(ended, full), name="shell-memory", daemon=True)
        watch.start()
        seen = _Seen(self._limits.output_chars)
        try:
            found = self._bash.execute_sync(run.script, on_output=seen.add)
        finally:
            ended.set()
            watch.join()
        error = found.error or ""
        code = TIMED_OUT if _TIMEOUT_SAID in error else WRONG_SYNTAX if error.startswith(_PARSE_ERROR) else found.exit_code
        if full.is_set():
            error, code = f"the script took more than {self._limits.memory_bytes // MIB} MiB of memory", 1
        if not error:
            return seen.result(found.stdout, found.stderr, code)
        self._bash.clear_cancel()
        self._bash.execute_sync(_END_JOBS)  # or the next script would wait for them
        return seen.result("".join(seen.out), "".join(seen.err) + (error if error.endswith("\n") else f"{error}\n"), code)

    def _watch(self, ended: threading.Event, full: threading.Event) -> None:
        """End the script when the process has grown too much: the interpreter counts texts, not what nested commands take."""
        before = _resident_bytes()
        while not ended.wait(_WATCH_S):
            if _resident_bytes() - before > self._limits.memory_bytes:
                full.set()
                self._bash.cancel()
                return


def _deepen_threads(bash: Any) -> None:
    """Give the threads that the interpreter starts from now on a deep stack: once a process, as it reads the size once, when it
    starts its first. It parses long scripts in one; this is a long one that does nothing."""
    with _stack_size:
        if _deepened or _ENV_STACK in os.environ:
            return
        _deepened.append(True)
        os.environ[_ENV_STACK] = str(_STACK_BYTES)
        try:
            bash.execute_sync(": " + "x" * _PARSED_ASIDE_BYTES)
        finally:
            del os.environ[_ENV_STACK]


def _start_deep(run: Callable[[], None]) -> None:
    """Run in a thread with a deep stack."""
    with _stack_size:
        for size in (_STACK_BYTES, _SMALL_STACK_BYTES):
            before = threading.stack_size(size)
            try:
                threading.Thread(target=run, name="shell", daemon=True).start()
            except RuntimeError:
                if size == _SMALL_STACK_BYTES:
                    raise
            else:
                return
            finally:
                threading.stack_size(before)


def _resident_bytes() -> int:
    """What this process has in memory; where the system does not say, the most it ever had."""
    try:
        with open("/proc/self/statm", "rb") as handle:
            return int(handle.read().split()[1]) * _PAGE_BYTES
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
