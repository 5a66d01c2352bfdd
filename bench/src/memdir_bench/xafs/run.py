"""Runs an agent over the questions of corpora in each condition, and keeps what every run said and cost."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import UsageError
from memdir.llm.port import Model
from memdir.shell import Shell, ShellLimits
from memdir_bench.figures import percentile
from memdir_bench.mcp_client import mcp_server
from memdir_bench.posix.clocks import cpu_s, resident_mib
from memdir_bench.session import BenchSession, open_session
from memdir_bench.xafs import model_agent
from memdir_bench.xafs.conditions import INSTRUCTIONS, Run, ShellCommands, in_folder, in_mcp, in_shell
from memdir_bench.xafs.corpus import PLANS_FILE, QUESTIONS_FILE
from memdir_bench.xafs.hosts import HostAgent
from memdir_bench.xafs.policy import Budget, answer
from memdir_bench.xafs.questions import Question, is_right
from memdir_bench.xafs.reading import by_format
from memdir_bench.xafs.world import Fact

CONDITIONS: Final = ("plain", "mount", "mount-without-hint", "shell", "mcp")
AGENT_FILE: Final = "agent.txt"
_SYNC_S: Final = 4 * 3600
_SEARCHES: Final = 20
"""When everything is searchable."""
_SEARCH_EVERY_S: Final = 1.0
"""While it is not."""
_NAME: Final = "drive"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an agent works: how it runs a command, the drive in it, and for a host program the folder and the environment."""

    run: Run
    drive: Path | None
    """None where it cannot be written to but through memdir's own shell, which runs one command at a time."""
    folder: Path
    env: dict[str, str]
    settle: Callable[[], object] = lambda: None
    """Waits until what was changed in the drive is searchable."""


def corpora_in(folder: Path) -> list[Path]:
    """The folders of corpora, smallest first; UsageError when there are none."""
    found = [path.parent for path in folder.glob(f"*/{QUESTIONS_FILE}")]
    if not found:
        raise UsageError(f"there is no corpus in {folder}", hint="make some: memdir bench xafs make --out FOLDER")
    return sorted(found, key=lambda path: json.loads((path / QUESTIONS_FILE).read_text())["corpus"])


def questions_in(corpus: Path) -> list[tuple[str, Question]]:
    """The questions with their ids, and through which facts they go."""
    told = json.loads((corpus / QUESTIONS_FILE).read_text(encoding="utf-8"))["questions"]
    plans = json.loads((corpus / PLANS_FILE).read_text(encoding="utf-8"))
    return [
        (
            one["id"],
            Question(
                prompt=one["prompt"], family=one["family"], kind=one["kind"], answer=one["gold_answer"],
                facts=tuple(Fact(*fact) for fact in plans[one["id"]]["facts"]), sums=plans[one["id"]]["sums"],
            ),
        )
        for one in told
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Runner:
    """How questions are answered and where runs are kept."""

    out: Path
    budget: Budget
    say: Say
    agent: Model | HostAgent | None = None
    """None: the scripted agent, which writes nothing."""
    parallel: int = 1
    """Questions of one drive that are answered at once."""

    def __call__(self, condition: str, place: Place, corpus: Path) -> None:
        """Every question of the corpus that is not kept yet, `parallel` at once. What an agent wrote is put back before the
        next ones."""
        size = json.loads((corpus / QUESTIONS_FILE).read_text())["corpus"]
        questions = questions_in(corpus)

        def ask(question_id: str, question: Question) -> None:
            row = {"id": question_id, "corpus": size, "family": question.family, "condition": condition}
            _keep(self.file(condition, corpus, question_id), row | self._answered(condition, place, question_id, question))

        missing = [one for one in questions if not self.file(condition, corpus, one[0]).exists()]
        written = place.drive if self.agent is not None else None
        names = frozenset() if written is None else frozenset(path.relative_to(written) for path in written.rglob("*"))
        at_once = self.parallel if place.drive is not None or isinstance(self.agent, HostAgent) else 1
        with ThreadPoolExecutor(at_once) as pool:
            for first in range(0, len(missing), at_once):
                for answered in [pool.submit(ask, *one) for one in missing[first : first + at_once]]:
                    answered.result()
                if written is not None:
                    put_back(corpus / "files", written, names)
                    place.settle()
        rows = [json.loads(self.file(condition, corpus, question_id).read_text()) for question_id, _ in questions]
        right = sum(row["correct"] for row in rows)
        self.say(f"{corpus.name} {condition}: {right} of {len(rows)} right, {sum(row['tokens'] for row in rows):,} tokens")

    def file(self, condition: str, corpus: Path, question_id: str) -> Path:
        """Where a run is kept."""
        return self.out / condition / corpus.name / f"{question_id}.json"

    def is_done(self, condition: str, corpus: Path) -> bool:
        """Whether every question is kept."""
        return all(self.file(condition, corpus, question_id).exists() for question_id, _ in questions_in(corpus))

    def _answered(self, condition: str, place: Place, question_id: str, question: Question) -> dict[str, Any]:
        began_s = time.monotonic()
        told = INSTRUCTIONS[condition]
        if isinstance(self.agent, HostAgent):
            given, account = self.agent.answer(
                question.prompt, place.folder, place.env, instructions=told, budget=self.budget,
                memory=_NAME if condition == "mcp" else None,
            )  # fmt: skip
        elif self.agent is not None:
            given, account = model_agent.answer(question.prompt, place.run, self.agent, instructions=told, budget=self.budget)
        else:
            commands = ShellCommands(
                place.run, semantic=condition in ("mount", "shell", "mcp"), converters=condition == "plain"
            )
            given, account = answer(question, commands, instructions=told, budget=self.budget, seed=question_id)
        return {
            "agent": _agent_name(self.agent), "answer": given, "gold_answer": question.answer,
            "correct": is_right(given, question.answer), "tokens": account.tokens, "tokens_in": account.tokens_in,
            "tokens_cached": account.tokens_cached, "tokens_out": account.tokens_out, "calls": account.calls,
            "wall_s": round(time.monotonic() - began_s, 3),
            "transcript": [{"command": step.command, "printed": step.printed} for step in account.transcript],
        }  # fmt: skip


def put_back(files: Path, drive: Path, names: Set[Path]) -> None:
    """Make `drive` what `files` is again: what is not of `names`, or of another kind, goes; what was changed or removed comes
    back."""
    for path in sorted(drive.rglob("*"), reverse=True):
        name = path.relative_to(drive)
        is_other = path.is_symlink() or ((files / name).exists() and (files / name).is_dir() != path.is_dir())
        if is_other or name not in names:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for file in sorted(files.rglob("*")):
        there = drive / file.relative_to(files)
        if file.is_dir():
            there.mkdir(exist_ok=True)
        elif not there.is_file() or _stamp(there) != _stamp(file):
            shutil.copy2(file, there)


def _stamp(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _agent_name(agent: Model | HostAgent | None) -> str:
    return "scripted" if agent is None else " ".join((agent.name, *agent.more)) if isinstance(agent, HostAgent) else agent.name


def _keep(file: Path, row: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".part")
    partial.write_text(json.dumps(row, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    partial.replace(file)


def run_all(corpora: Sequence[Path], runner: Runner, *, conditions: Sequence[str]) -> None:
    """Every question in every condition that is not kept yet. UsageError when another agent's runs are kept there."""
    _check_agent(runner)
    if isinstance(runner.agent, HostAgent):
        runner.agent.check(conditions)
    for corpus in corpora:
        if "plain" in conditions:
            with in_copy(corpus) as folder:
                runner("plain", Place(run=in_folder(folder, {}), drive=folder, folder=folder, env={}), corpus)
        ours = [one for one in conditions if one != "plain" and not runner.is_done(one, corpus)]
        if ours:
            with _mounted(corpus, runner) as (session, mount):
                for condition in ours:
                    with _ours(condition, session, mount) as place:
                        runner(condition, place, corpus)


def _check_agent(runner: Runner) -> None:
    """One folder keeps the runs of one agent: tokens of two are not to be added."""
    name = _agent_name(runner.agent)
    file = runner.out / AGENT_FILE
    runner.out.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(name + "\n", encoding="utf-8")
    elif (kept := file.read_text(encoding="utf-8").strip()) != name:
        raise UsageError(f"{runner.out} keeps runs of the agent {kept}, and this is {name}", hint="choose another --out")


def _path() -> str:
    """Where `memdir` is, as the agent's shell finds it."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@contextmanager
def _mounted(corpus: Path, runner: Runner) -> Iterator[tuple[BenchSession, Path]]:
    """The corpus in a mount of its own home, when all of it is searchable; what that took is noted."""
    with open_session() as session:
        session.mount(_NAME)
        mount = session.folder / _NAME
        began_s = time.monotonic()
        shutil.copytree(corpus / "files", mount, dirs_exist_ok=True)
        copied_s = time.monotonic() - began_s
        prompts = [question.prompt for _, question in questions_in(corpus)]
        with _searching(session, prompts) as during_ms:
            _wait_until_searchable(session)
        took_s = time.monotonic() - began_s
        after_ms = [_search_ms(session, prompt) for prompt in (prompts * _SEARCHES)[:_SEARCHES]]
        pid = int(session.server_status()["pid"])
        status = session.memdir("status", _NAME, "--json").json()
        files = [file for file in (corpus / "files").rglob("*") if file.is_file()]
        told = {
            "corpus": len(files), "copied_s": round(copied_s, 2), "seconds": round(took_s, 2),
            "files_per_s": round(len(files) / took_s, 2),
            "cpu_s": round(cpu_s(pid, session.daemon_pid(_NAME)), 1), "server_peak_mib": round(resident_mib(pid, peak=True), 1),
            "failed": status["failed"], "size_bytes": sum(file.stat().st_size for file in files),
            "formats": by_format(files), "searches_during": len(during_ms),
            "search_during_p95_ms": round(percentile(during_ms, 0.95), 1) if during_ms else None,
            "search_after_p95_ms": round(percentile(after_ms, 0.95), 1),
        }  # fmt: skip
        folder = runner.out / "ingest"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{corpus.name}.json").write_text(json.dumps(told) + "\n")
        runner.say(f"{corpus.name}: {len(files)} files searchable after {took_s:.0f} s, {told['failed']} unreadable")
        yield session, mount
        session.unmount(_NAME)


def _wait_until_searchable(session: BenchSession) -> None:
    session.memdir("sync", _NAME, "--wait", "--timeout", str(_SYNC_S), limit_s=_SYNC_S + 60)


@contextmanager
def _searching(session: BenchSession, prompts: Sequence[str]) -> Iterator[list[float]]:
    """Milliseconds of a search each second, beside whatever else is done. BenchError when one fails."""
    took_ms: list[float] = []
    ended = threading.Event()

    def search() -> None:
        for prompt in itertools.cycle(prompts):
            if ended.wait(_SEARCH_EVERY_S):
                return
            took_ms.append(_search_ms(session, prompt))

    with ThreadPoolExecutor(1) as pool:
        searches = pool.submit(search)
        try:
            yield took_ms
        finally:
            ended.set()
        searches.result()


def _search_ms(session: BenchSession, prompt: str) -> float:
    """The whole command; nothing found is an answer."""
    return session.memdir("grep", "--no-wait", prompt, _NAME, allowed=(0, 1)).elapsed_s * 1000


@contextmanager
def in_copy(corpus: Path) -> Iterator[Path]:
    """The files in a folder of their own: an agent may write."""
    with tempfile.TemporaryDirectory(prefix="memdir-xafs-") as folder:
        yield Path(shutil.copytree(corpus / "files", Path(folder, _NAME)))


@contextmanager
def _ours(condition: str, session: BenchSession, mount: Path) -> Iterator[Place]:
    """What an agent has in one of the conditions with memdir."""
    env = session.env | {"PATH": _path()}
    with ExitStack() as stack:
        if condition == "shell":
            run, folder, drive = in_shell(stack.enter_context(_in_process(session))), session.folder, None
        elif condition == "mcp":
            tools = stack.enter_context(mcp_server({**os.environ, **env}, session.folder, "--shell", _NAME))
            run, folder, drive = in_mcp(tools), session.folder, None
        else:
            run, folder, drive = in_folder(mount, env), mount, mount
        yield Place(run=run, drive=drive, folder=folder, env=env, settle=lambda: _wait_until_searchable(session))


@contextmanager
def _in_process(session: BenchSession) -> Iterator[Shell]:
    before = os.environ.get("MEMDIR_HOME")
    os.environ["MEMDIR_HOME"] = session.env["MEMDIR_HOME"]
    try:
        with Shell(_NAME, limits=ShellLimits(timeout_s=120)) as shell:
            yield shell
    finally:
        if before is None:
            del os.environ["MEMDIR_HOME"]
        else:
            os.environ["MEMDIR_HOME"] = before
