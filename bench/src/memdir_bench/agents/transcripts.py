"""Transcripts as hosts write them, with planted statements that a later session should know and noise around them.

Statements in `sessions/`: those of `held.txt` are worded by nothing that a rule was made for. `+ KIND WHO WORDS: TEXT` is
planted, and a candidate that holds all WORDS is it; `- WHO: TEXT` is noise.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from memdir.agents.capture.candidates import candidates
from memdir.agents.capture.transcripts import read_transcript
from memdir_bench.agents.goals import figure
from memdir_bench.figures import Figure
from memdir_bench.retrieval.metrics import wilson

SESSIONS: Final = 30
"""Of each half: 60 in all."""
PLANTED: Final = (1, 4)
"""At least and at most in one session."""
LARGE_BYTES: Final = 5 << 20
_PLANTED: Final = re.compile(r"\+ \w+ (\w+) (\S+): (.+)")
_NOISE: Final = re.compile(r"- (\w+): (.+)")
_OUTPUT: Final = "src/orders/handlers.py:{n}: def handle_{n}(order): return ship(order, retries={n})\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """`who`: user, assistant or tool. `words`: in what should be remembered of it; none in noise. A tool's planted text is
    a failed command, its error, and the command that worked."""

    who: str
    text: str
    words: tuple[str, ...] = ()


def statements(half: str) -> list[Said]:
    """Of `tuned` or `held`."""
    found = []
    for line in files("memdir_bench.agents").joinpath("sessions", f"{half}.txt").read_text(encoding="utf-8").splitlines():
        if planted := _PLANTED.fullmatch(line):
            found.append(Said(who=planted[1], text=planted[3], words=tuple(planted[2].split(","))))
        elif noise := _NOISE.fullmatch(line):
            found.append(Said(who=noise[1], text=noise[2]))
        elif not line.startswith("#"):
            raise ValueError(f"{half}.txt: {line!r} is no statement")
    return found


def sessions(half: str) -> list[list[Said]]:
    """SESSIONS of them: a few planted statements each, among three times as much noise. The same for the same half."""
    chance = random.Random(f"sessions {half}")  # noqa: S311
    known = statements(half)
    planted, noise = [one for one in known if one.words], [one for one in known if not one.words]
    made = []
    for _ in range(SESSIONS):
        some = chance.sample(planted, chance.randint(*PLANTED))
        turns = [*some, *chance.sample(noise, 4 * len(some) + 6)]
        chance.shuffle(turns)
        made.append(turns)
    return made


# --- as hosts write them -----------------------------------------------------------------------------------------------


def claude_code(turns: Sequence[Said], session: str, cwd: str) -> Iterator[dict[str, Any]]:
    """Lines of a transcript of Claude Code 2.1."""
    around = {"sessionId": session, "cwd": cwd, "isSidechain": False, "version": "2.1.197"}
    for number, one in enumerate(turns):
        for call, command, output, failed in _calls(one, number):
            block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
            yield {**around, "type": "assistant", "message": {"role": "assistant", "content": [block]}}
            result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": failed}
            yield {**around, "type": "user", "message": {"role": "user", "content": [result]}}
        if one.who != "tool":
            said: Any = one.text if one.who == "user" else [{"type": "text", "text": one.text}]
            yield {**around, "type": one.who, "message": {"role": one.who, "content": said}}


def codex(turns: Sequence[Said], session: str, cwd: str) -> Iterator[dict[str, Any]]:
    """Lines of a rollout of Codex 0.169."""
    yield {"type": "session_meta", "payload": {"id": session, "cwd": cwd, "cli_version": "0.169.0"}}
    for number, one in enumerate(turns):
        for call, command, output, failed in _calls(one, number):
            arguments = json.dumps({"cmd": command})
            payload = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call}
            yield {"type": "response_item", "payload": payload}
            text = f"Process exited with code {int(failed)}\nOutput:\n{output}"
            yield {"type": "response_item", "payload": {"type": "function_call_output", "call_id": call, "output": text}}
        if one.who != "tool":
            kind = "input_text" if one.who == "user" else "output_text"
            content = [{"type": kind, "text": one.text}]
            yield {"type": "response_item", "payload": {"type": "message", "role": one.who, "content": content}}


def gemini(turns: Sequence[Said], session: str, _cwd: str) -> Iterator[dict[str, Any]]:
    """Lines of a session of Gemini CLI 0.61."""
    yield {"sessionId": session, "projectHash": "0" * 64, "kind": "main"}
    for number, one in enumerate(turns):
        for call, command, output, failed in _calls(one, number):
            text = f"<untrusted_context>\nOutput: {output}\n" + ("Exit Code: 1\n" if failed else "") + "</untrusted_context>"
            result = [{"functionResponse": {"id": call, "name": "run_shell_command", "response": {"output": text}}}]
            tool = {
                "id": call,
                "name": "run_shell_command",
                "args": {"command": command},
                "result": result,
                "status": "success",
            }
            yield {"id": f"{session}-{call}", "type": "gemini", "content": "", "toolCalls": [tool]}
        if one.who != "tool":
            kind = "user" if one.who == "user" else "gemini"
            content: Any = [{"text": one.text}] if kind == "user" else one.text
            for _ in range(2 if kind == "gemini" else 1):  # it writes a message again when more of it is known
                yield {"id": f"{session}-{number}", "type": kind, "content": content}


def _calls(one: Said, number: int) -> Iterator[tuple[str, str, str, bool]]:
    """Id, command, output and whether it failed of the commands of a turn of a tool."""
    if one.who != "tool":
        return
    if not one.words:
        yield f"call_{number}", f"cat notes-{number}.txt", one.text, False
        return
    failed, worked = one.text.removeprefix("FAIL ").split(" ;; OK ")
    command, error = failed.split(" >> ")
    yield f"call_{number}_1", command, error, True
    yield f"call_{number}_2", worked, "12 passed", False


WRITERS: Final[dict[str, Callable[[Sequence[Said], str, str], Iterator[dict[str, Any]]]]] = {
    "claude-code": claude_code, "codex": codex, "gemini": gemini,
}  # fmt: skip


def written(file: Path, host: str, turns: Sequence[Said], *, session: str = "s", cwd: str = "/tmp") -> Path:  # noqa: S108
    """A transcript in a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(line) + "\n" for line in WRITERS[host](turns, session, cwd)]
    file.write_text("".join(lines), encoding="utf-8")
    return file


# --- figures -----------------------------------------------------------------------------------------------------------


def capture_figures(folder: Path) -> Iterator[Figure]:
    """Precision and recall of what is found by rules, each half apart, and the time of a long session."""
    hosts = list(WRITERS)
    for half in ("tuned", "held"):
        told = right = there = found = 0
        for number, turns in enumerate(sessions(half)):
            file = written(folder / f"{half}-{number}.jsonl", hosts[number % len(hosts)], turns)
            texts = [one.content.casefold() for one in candidates(read_transcript(file).turns)]
            planted = [one.words for one in turns if one.words]
            there += len(planted)
            found += sum(any(_holds(text, words) for text in texts) for words in planted)
            told += len(texts)
            right += sum(any(_holds(text, words) for words in planted) for text in texts)
        yield from _shares(half, right=right, told=told, found=found, there=there)
    yield _time(folder)


def _holds(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)


def _shares(half: str, *, right: int, told: int, found: int, there: int) -> Iterator[Figure]:
    for name, some, of in (("capture_precision", right, told), ("capture_recall", found, there)):
        spread = wilson(some, max(1, of))
        yield figure(f"{half}_{name}", some / max(1, of), "share", samples=of, spread=spread, better="higher")


def _time(folder: Path) -> Figure:
    """Of a transcript of LARGE_BYTES, most of which is the output of tools, as it is in real ones."""
    turns: list[Said] = []
    size = 0
    for number, one in enumerate(turn for _ in range(1_000) for session in sessions("tuned") for turn in session):
        output = "".join(_OUTPUT.format(n=number + at) for at in range(40))
        turns += [one, Said(who="tool", text=output)]
        size += len(one.text) + len(output) + 400
        if size > LARGE_BYTES:
            break
    file = written(folder / "large.jsonl", "claude-code", turns)
    began = time.perf_counter()
    candidates(read_transcript(file).turns)
    took_s = time.perf_counter() - began
    return figure("capture_5_mib", took_s, "s", note=f"{file.stat().st_size >> 20} MiB, {len(turns):,} turns")
