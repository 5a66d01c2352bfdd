"""The port over the wire formats of three providers, as they document them: what is sent, what comes back, what fails."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memdir.core.errors import UsageError
from memdir.llm.port import ContextOverflowError, Message, ModelError, Reply, ToolSpec
from memdir.llm.providers import model
from tests.research.endpoint import Answer, served

TOOLS = [
    ToolSpec(
        name="read",
        description="Read a file.",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    )
]


def openai(text: str, call: dict[str, Any] | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if call:
        function = {"name": "read", "arguments": json.dumps(call)}
        message["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
    return {
        "id": "x", "object": "chat.completion", "created": 1_700_000_000, "model": "gpt-6-luna",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}],
        "usage": {
            "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "prompt_tokens_details": {"cached_tokens": 40},
        },
    }  # fmt: skip


def anthropic(text: str, call: dict[str, Any] | None) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "thinking", "thinking": "hmm", "signature": "SIGNED"}]
    content += [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": "c1", "name": "read", "input": call}] if call else []
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": content,
        "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 60, "output_tokens": 20, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 0},
    }  # fmt: skip


def google(text: str, call: dict[str, Any] | None) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts += [{"functionCall": {"name": "read", "args": call}, "thoughtSignature": "U0lHTkVE"}] if call else []
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 20,
            "totalTokenCount": 120,
            "cachedContentTokenCount": 40,
        },
        "modelVersion": "gemini-3.8-flash",
        "responseId": "r1",
    }


PROVIDERS: dict[str, tuple[str, Callable[[str, dict[str, Any] | None], dict[str, Any]]]] = {
    "openai:gpt-6-luna": ("/v1", openai),
    "anthropic:claude-sonnet-5-5": ("", anthropic),
    "google:gemini-3.8-flash": ("", google),
}


class Endpoint:
    """Answers one after the other; keeps what it was sent."""

    def __init__(self, *answers: tuple[int, dict[str, Any]]) -> None:
        self._answers = list(answers)
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, _path: str, body: bytes) -> Answer:
        self.bodies.append(json.loads(body))
        status, answer = self._answers.pop(0)
        return status, {"Content-Type": "application/json", "Retry-After": "0"}, json.dumps(answer).encode()


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "test-key")
    for name in ("MEMDIR_MODEL", "MEMDIR_MODEL_URL", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    gc.freeze()
    yield
    gc.collect()  # what is left open is this test's
    gc.unfreeze()


def asked(name: str, endpoint: Endpoint, *rounds: list[Message], waits: list[float] | None = None, **more: Any) -> list[Reply]:
    with served(endpoint) as address:
        made = model(name, url=address + PROVIDERS[name][0])
        made._wait = (waits if waits is not None else []).append
        return [made.ask("You are a librarian.", messages, **more) for messages in rounds]


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_call_its_result_and_the_answer_go_through(name: str) -> None:
    answer = PROVIDERS[name][1]
    endpoint = Endpoint((200, answer("", {"path": "a.md"})), (200, answer("It says hello.", None)))
    begin = [Message(role="user", text="What does a.md say?")]
    with served(endpoint) as address:
        made = model(name, url=address + PROVIDERS[name][0])
        first = made.ask("You are a librarian.", begin, tools=TOOLS)
        [call] = first.calls
        assert (call.name, call.arguments) == ("read", {"path": "a.md"})
        assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.cached_tokens) == (100, 20, 40)
        assert first.usage.usd is not None
        assert 0 < first.usage.usd < 0.01
        later = [
            *begin,
            Message(role="assistant", text=first.text, calls=first.calls, echo=first.echo),
            Message(role="tool", text="hello", call_id=call.id, name="read"),
        ]
        second = made.ask("You are a librarian.", later, tools=TOOLS)
    assert second.text == "It says hello."
    assert second.calls == ()
    sent = json.dumps(endpoint.bodies[1])
    assert "You are a librarian." in sent
    assert "hello" in sent
    if name.startswith("anthropic"):
        assert "SIGNED" in sent  # reasoning goes back as it came
    if name.startswith("google"):
        assert "U0lHTkVE" in sent


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_conversation_of_another_model_is_taken_over(name: str) -> None:
    """Without an echo: what a journal holds of a run that goes on with another model."""
    from memdir.llm.port import ToolCall

    endpoint = Endpoint((200, PROVIDERS[name][1]("Done.", None)))
    messages = [
        Message(role="user", text="Go."),
        Message(role="assistant", text="I read.", calls=(ToolCall(id="z", name="read", arguments={"path": "b.md"}),)),
        Message(role="tool", text="content of b", call_id="z", name="read"),
        Message(role="user", text="And now?"),
    ]
    [reply] = asked(name, endpoint, messages, tools=TOOLS)
    assert reply.text == "Done."
    sent = json.dumps(endpoint.bodies[0])
    assert all(text in sent for text in ("Go.", "I read.", "b.md", "content of b", "And now?"))


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_schema_is_sent_along(name: str) -> None:
    endpoint = Endpoint((200, PROVIDERS[name][1]('{"relevant": true}', None)))
    schema = {
        "type": "object",
        "properties": {"relevant": {"type": "boolean"}},
        "required": ["relevant"],
        "additionalProperties": False,
    }
    [reply] = asked(name, endpoint, [Message(role="user", text="Is it?")], schema=schema)
    assert json.loads(reply.text) == {"relevant": True}
    assert "relevant" in json.dumps(endpoint.bodies[0])


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_passes_is_tried_again(name: str, status: int) -> None:
    answers = [(status, {"error": {"message": "busy", "type": "overloaded_error", "status": "UNAVAILABLE"}})] * 3
    endpoint = Endpoint(*answers, (200, PROVIDERS[name][1]("At last.", None)))
    waits: list[float] = []
    [reply] = asked(name, endpoint, [Message(role="user", text="Go.")], waits=waits)
    assert reply.text == "At last."
    assert len(endpoint.bodies) == 4


def _error(message: str, code: str) -> dict[str, Any]:
    """Of OpenAI and of Anthropic, whose clients each read their own part."""
    return {"type": "error", "error": {"message": message, "code": code, "type": code}}


@pytest.mark.parametrize(
    ("name", "status", "answer", "kind", "said"),
    [
        ("openai:gpt-6-luna", 401, _error("bad key", "invalid_api_key"), ModelError, "key is refused"),
        ("anthropic:claude-sonnet-5-5", 401, _error("x", "authentication_error"), ModelError, "key is refused"),
        ("openai:gpt-6-luna", 404, _error("no such model", "model_not_found"), ModelError, "no such model"),
        ("openai:gpt-6-luna", 429, _error("pay", "insufficient_quota"), ModelError, "quota"),
        ("openai:gpt-6-luna", 400, _error("too many tokens", "context_length_exceeded"), ContextOverflowError, "too long"),
        (
            "anthropic:claude-sonnet-5-5",
            400,
            _error("prompt is too long: 250000 tokens > 200000 maximum", "invalid_request_error"),
            ContextOverflowError,
            "too long",
        ),
    ],
)
def test_what_does_not_pass_says_what_it_is(
    name: str, status: int, answer: dict[str, Any], kind: type[Exception], said: str
) -> None:
    endpoint = Endpoint(*[(status, answer)] * 30)
    with pytest.raises(kind, match=said):
        asked(name, endpoint, [Message(role="user", text="Go.")])


@pytest.mark.parametrize(
    ("name", "url", "said"),
    [
        ("", None, "no language model"),
        ("gpt-5", None, "no PROVIDER:NAME"),
        ("nobody:x", None, "nobody"),
        ("groq:x", "http://127.0.0.1:1", "no address"),
    ],
)
def test_names_that_mean_nothing_are_told(name: str, url: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        model(name or None, url=url)


def test_without_a_key_the_provider_says_which_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        model("anthropic:claude-sonnet-5-5")


def test_a_model_here_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    endpoint = Endpoint((200, openai("hi", None) | {"model": "unheard-of"}))
    [reply] = asked("openai:gpt-6-luna", endpoint, [Message(role="user", text="Go.")])
    assert isinstance(reply, Reply)
