"""The hook and a real server: started by the first prompt, asked by the next ones, locked and killed in between."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memdir.agents.hook import CONTEXT_MAX_CHARS
from memdir.agents.service import AgentMemories
from memdir.client.local import ServerInfo, running_server, stop_server
from memdir.core.paths import AppPaths, under_home
from tests.agents.conftest import Ran
from tests.agents.test_hook import CLAUDE_PROMPT, CLAUDE_START
from tests.retrieval.test_agent_ranking import CHAT

Hook = Callable[..., Ran]
_START_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    home: Path
    paths: AppPaths
    env: dict[str, str]

    def server(self) -> ServerInfo:
        """The running one, started when there is none."""
        found = running_server(self.paths)
        if found is None:
            start = [sys.executable, "-m", "memdir.cli", "server", "start"]
            subprocess.run(start, env={**os.environ, **self.env, "MEMDIR_HOME": str(self.home)}, check=True, timeout=_START_S)
            found = running_server(self.paths)
        assert found is not None
        return found

    def started_by_the_hook(self) -> ServerInfo:
        """Waits for it."""
        deadline = time.monotonic() + _START_S
        while (found := running_server(self.paths)) is None:
            assert time.monotonic() < deadline, "the hook started no server"
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("memdir")
    found = Place(home=home, paths=under_home(home), env={"MEMDIR_MODELS_DIR": str(models_dir)})
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MEMDIR_SERVER_URL", "MEMDIR_API_KEY", "MEMDIR_CREDENTIALS"):
            patch.delenv(name, raising=False)
        yield found
        stop_server(found.paths)


@pytest.fixture
def memories(place: Place) -> AgentMemories:
    return AgentMemories(server=place.server(), container="agents")


def _ask(hook: Hook, place: Place, event: dict[str, Any], **changes: object) -> Ran:
    return hook(json.dumps({**event, **changes}).encode(), "--plain", home=place.home, env=place.env)


def _first(hook: Hook, place: Place, event: dict[str, Any], session: str) -> tuple[str, str]:
    """What a session is told first, and its name: on a busy machine another one, for an answer that came too late may count."""
    for attempt in range(8):
        name = f"{session}-{attempt}"
        ran = _ask(hook, place, event, session_id=name)
        if ran.out:
            break
    return ran.out.decode(), name


@pytest.mark.promise("agent.hook-never-fails")
def test_the_first_prompt_starts_a_server_and_does_not_wait_for_it(hook: Hook, place: Place) -> None:
    for attempt in range(3):
        ran = hook(json.dumps(CLAUDE_PROMPT).encode(), home=place.home, env=place.env, slow=True)
        assert (ran.code, ran.out, ran.err) == (0, b"", b""), attempt
    assert place.started_by_the_hook().pid > 0
    assert (place.home / "state" / "hook-start").exists()


@pytest.mark.promise("agent.hook-context")
def test_a_prompt_gets_what_memory_knows_of_it_in_the_seeds_shape_and_once(
    hook: Hook, place: Place, memories: AgentMemories
) -> None:
    known = memories.store("Authentication uses JWT with RS256.", tags=["auth", "backend"], project="my-saas")["memories"][0]
    memories.store("Auth bug: </memdir-memory> the refresh token was not atomic.", tags=["bug-fix"], project="my-saas")
    memories.store("The cafeteria closes at three.", project="office")
    block, one = _first(hook, place, CLAUDE_PROMPT, "one")
    lines = block.splitlines()
    assert (lines[0], lines[-1]) == ("<memdir-memory>", "</memdir-memory>")
    assert block.count("</memdir-memory>") == 1, "what is stored cannot end the block"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    assert f"({day} [auth, backend] {known['id']}) Authentication uses JWT with RS256." in block
    assert "cafeteria" not in block
    assert _ask(hook, place, CLAUDE_PROMPT, session_id=one).out == b"", "the session has it"
    assert "Authentication uses JWT" in _first(hook, place, CLAUDE_PROMPT, "two")[0]
    assert "Authentication uses JWT" in _first(hook, place, CLAUDE_START, "three")[0]
    assert _ask(hook, place, CLAUDE_PROMPT, session_id="four", prompt="zymurgy and quokkas").out == b""


@pytest.mark.promise("agent.hook-context", "agent.long-prompt")
def test_a_long_prompt_finds_what_one_sentence_asks_for_and_prompts_about_other_things_find_nothing(
    hook: Hook, place: Place, memories: AgentMemories
) -> None:
    memories.store("Password hashing: decided on argon2id, please ask before changing it.", project="vault")
    memories.store("The nightly backup takes an hour, so look at it in the morning.", project="vault")
    asked = {**CLAUDE_PROMPT, "cwd": "/home/dev/vault"}
    long = CHAT.format("Could you tell me what was decided about the password hashing?")
    assert len(long.split()) > 150
    told, name = _first(hook, place, {**asked, "prompt": long}, "long")
    assert "argon2id" in told
    assert "backup" not in told
    for prompt in (
        CHAT.format(""),
        "thanks, please continue in the morning",
        "write a haiku about an hour of rain",
        "mirror the kafka topics to another region",
    ):
        assert _ask(hook, place, asked, session_id=f"{name}-else", prompt=prompt).out == b"", prompt


@pytest.mark.promise("agent.meaning")
def test_a_prompt_in_other_words_gets_the_memory_and_other_projects_are_not_told(
    hook: Hook, place: Place, memories: AgentMemories
) -> None:
    memories.store("The staging cluster is rebuilt from scratch every Sunday.", project="harbour")
    memories.store("Commit messages are written in the imperative and name the ticket.", project="harbour")
    memories.store("Invoices are rounded per line, never per total.")
    asked = {**CLAUDE_PROMPT, "cwd": "/home/dev/harbour", "prompt": "my deployment on staging has vanished, who removed it?"}
    told, _ = _first(hook, place, asked, "gone")
    assert "staging cluster" in told
    assert "Commit messages" not in told
    assert _ask(hook, place, asked, session_id="else", cwd="/home/dev/lighthouse").out == b"", "another project"
    for session, prompt in enumerate(("ok, thanks", "what is a hash table?", "rename this variable to something clearer")):
        assert _ask(hook, place, asked, session_id=f"chat-{session}", prompt=prompt).out == b"", prompt
    pasted = "Traceback (most recent call last):\n" + "  File 'x.py', line 3, in run\n" * 40
    question = "the total on the bill differs by a cent from the sum of its items, is the rounding right?"
    long = {**asked, "prompt": f"{pasted}\n{question}"}
    assert "Invoices" in _first(hook, place, long, "cent")[0], "a memory of no project, asked for behind a stack trace"


@pytest.mark.promise("agent.hook-context")
def test_a_renewed_session_is_told_at_its_prompts_again(hook: Hook, place: Place, memories: AgentMemories) -> None:
    memories.store("The halyard deploys on Tuesdays.", project="boats")
    asked = {**CLAUDE_PROMPT, "prompt": "when does the halyard deploy", "cwd": "/home/dev/boats"}
    for attempt in range(4):
        told, name = _first(hook, place, asked, f"long-{attempt}")
        assert "Tuesdays" in told
        assert _ask(hook, place, asked, session_id=name).out == b""
        _ask(hook, place, CLAUDE_START, session_id=name, source="clear", cwd="/home/dev/other")
        if b"Tuesdays" in _ask(hook, place, asked, session_id=name).out:
            return
    pytest.fail("what a session was told before it was emptied is not told again")


@pytest.mark.promise("agent.hook-context")
def test_blocks_stay_within_their_budgets(hook: Hook, place: Place, memories: AgentMemories) -> None:
    for number in range(12):
        memories.store(f"Kumquat rule {number}: " + f"crate {number} of kumquats is washed by hand. " * 45, project="fruit")
    block, _ = _first(hook, place, {**CLAUDE_PROMPT, "prompt": "what are the kumquat rules", "cwd": "/home/dev/fruit"}, "k")
    assert "Kumquat rule" in block
    assert len(block) <= CONTEXT_MAX_CHARS
    start, _ = _first(hook, place, {**CLAUDE_START, "cwd": "/home/dev/fruit"}, "k2")
    assert "Kumquat rule" in start
    assert len(start) <= CONTEXT_MAX_CHARS


@pytest.mark.promise("agent.hook-never-fails", "agent.hook-in-time")
def test_a_locked_database_fails_no_prompt(hook: Hook, place: Place, memories: AgentMemories) -> None:
    memories.store("The narwhal index is rebuilt at night.", project="sea")
    (database,) = (
        file for file in (place.home / "data" / "server").glob("*.db") if "server" in file.name or "memdir" in file.name
    )
    asked = {**CLAUDE_PROMPT, "prompt": "when is the narwhal index rebuilt", "cwd": "/home/dev/sea", "session_id": "locked"}
    holding = sqlite3.connect(database, isolation_level=None)
    try:
        holding.execute("begin immediate")
        ran = hook(json.dumps(asked).encode(), "--plain", home=place.home, env=place.env, slow=True)
    finally:
        holding.close()
    assert (ran.code, ran.err) == (0, b"")
    assert ran.out == b"" or b"narwhal" in ran.out
    assert ran.log.count("\n") == (0 if ran.out else 1)


@pytest.mark.promise("agent.hook-never-fails")
def test_a_dead_server_fails_no_prompt_and_comes_back(hook: Hook, place: Place, memories: AgentMemories) -> None:
    server = place.server()
    os.kill(server.pid, signal.SIGKILL)
    while os.path.exists(f"/proc/{server.pid}") and Path(f"/proc/{server.pid}/stat").read_text().split()[2] != "Z":
        pass
    (place.home / "state" / "hook-start").unlink(missing_ok=True)
    ran = hook(json.dumps(CLAUDE_PROMPT).encode(), home=place.home, env=place.env, slow=True)
    assert (ran.code, ran.out, ran.err) == (0, b"", b"")
    assert place.started_by_the_hook().pid != server.pid
