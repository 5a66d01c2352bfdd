"""A real server with a language model configured: what the model reads of a note is a fact, with the line as its source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.research.endpoint import Answer, served
from tests.servers import launch, start

from .test_search_http import done


@pytest.mark.promise("facts.why")
def test_a_configured_model_reads_what_no_rule_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(_path: str, body: bytes) -> Answer:
        prompt = json.loads(body)["messages"][-1]["content"]
        asked.append(prompt)
        facts = [
            {"line": int(line.split(":")[0]), "statement": "I live in Porto."}
            for line in prompt.split("\n")
            if "Porto is home" in line
        ] + [{"line": 1, "statement": "I live in Atlantis."}]
        message = {"role": "assistant", "content": json.dumps({"facts": facts})}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        found = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        return 200, {"Content-Type": "application/json"}, json.dumps(found).encode()

    with served(answer) as address:
        monkeypatch.setenv("MEMDIR_MEMORY_MODEL", "openai:reader")
        monkeypatch.setenv("MEMDIR_MEMORY_MODEL_URL", f"{address}/v1")
        server = start(tmp_path / "home", "--port", "0")
        try:
            with server.client() as client:
                at = {"containerTag": "notes"}
                note = b"# Diary\n\nBoxes everywhere, but Porto is home from now on.\n"
                client.put("/v1/files/memory/diary.md", params=at, content=note).raise_for_status()
                found = []
                for _ in range(200):  # the model is asked while everything else is done already
                    done(client, "notes")
                    found = client.get("/v1/facts", params={**at, "words": "porto"}).json()["facts"]
                    if found:
                        break
                    client.get("/v1/changes", params={**at, "since": 1 << 40, "wait": 0.1})
                (fact,) = found
                assert [(one["path"], one["startLine"]) for one in fact["sources"]] == [("/memory/diary.md", 3)]
                assert client.get("/v1/facts", params={**at, "words": "atlantis"}).json() == {"facts": []}
                before = len(asked)
                client.put("/v1/files/other/page.md", params=at, content=b"Porto is home to many.\n").raise_for_status()
                done(client, "notes")
                assert len(asked) == before  # only what stands under the memory paths is sent anywhere
        finally:
            server.stop()


def test_a_model_that_is_named_wrong_ends_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIR_MEMORY_MODEL", "gpt")
    process, said = launch(tmp_path / "home")
    assert "no PROVIDER:NAME" in said
    assert process.wait(timeout=30) != 0
