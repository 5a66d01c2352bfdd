"""What memdir asks of a language model: messages and tools in, text or tool calls and their cost out.

Every type is a frozen record that turns into JSON and back without loss, so that a journal can keep what was paid for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from memdir.core.errors import MemdirError

CHARS_PER_TOKEN: Final = 3.5
"""A cautious estimate for English prose and code, for what has no count of its own yet."""


class ModelError(MemdirError):
    """The model's service refused or failed, after the retries that its client makes."""


class ContextOverflowError(ModelError):
    """The messages are longer than the model takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool that a model may call. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """`arguments` is what the model wrote, parsed; None when that is no JSON object."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """`role` user: `text`. assistant: `text`, `calls` and `echo`, which the adapter wants back as it was (reasoning). tool:
    the result `text` of the call `call_id` of the tool `name`."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    echo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider counts them; `cached_tokens` are part of `input_tokens`. `usd` is None where no price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    echo: str = ""


class Model(Protocol):
    """A language model. Thread-safe."""

    @property
    def name(self) -> str:
        """PROVIDER:NAME, for logs and reports."""

    def ask(
        self,
        system: str,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        """One request. With `schema` the text of the reply is a JSON document of it, as far as the provider can promise that.

        ModelError and ContextOverflowError.
        """


def json_of(answer: str) -> Any:
    """The JSON of an answer, with or without the fence that models like to put around it; None where there is none."""
    try:
        return json.loads(answer.strip().removeprefix("```json").removesuffix("```"))
    except (ValueError, RecursionError):
        return None


def ask_for_list(
    model: Model, system: str, lines: str, name: str, properties: Mapping[str, str]
) -> list[Mapping[str, Any]] | None:
    """What a model reads in lines of data, as it answers: `{name: [{property: …}]}`, `properties` with their JSON types. None
    when the answer is none. The lines stand between marks that they cannot know. ModelError."""
    items = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
    listed = {name: {"type": "array", "items": items}}
    schema = {"type": "object", "properties": listed, "required": [name], "additionalProperties": False}
    mark = f"lines {hashlib.sha256(lines.encode('utf-8', 'replace')).hexdigest()[:12]}"
    prompt = Message(role="user", text=f"<{mark}>\n{lines}\n</{mark}>")
    answer = json_of(model.ask(system, [prompt], schema=schema).text)
    found = answer.get(name) if isinstance(answer, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else None


def estimated_tokens(system: str, messages: Sequence[Message]) -> int:
    """How long a request is, roughly."""
    length = len(system) + sum(
        len(one.text) + len(one.echo) + sum(len(str(call.arguments)) for call in one.calls) for one in messages
    )
    return int(length / CHARS_PER_TOKEN)
