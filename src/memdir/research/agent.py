"""One conversation between a model and its tools, every step of it in the journal before the next."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from memdir.core.errors import MemdirError
from memdir.llm.port import ContextOverflowError, Message, Model, Reply, ToolCall, ToolSpec, estimated_tokens
from memdir.research.state import Stage, State, model_entry

MALFORMED_MAX: Final = 5
FINISHES_MAX: Final = 4
"""How often a stage may call itself done and be sent back; then it ends with what is wrong written down."""
CALLS_MAX: Final = 16
"""Of one answer."""
_KEPT_MESSAGES: Final = 8
_ACTION: Final = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)
_NO_ACTION: Final = "That held no action. Call one of the tools: {names}. When this stage is done, call finish."


class BudgetSpentError(MemdirError):
    """What the run may cost is used up; it goes on with a larger budget."""


class PausedError(MemdirError):
    """The user asked the run to pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Of a call: what the model reads, what people read, the files that it changes, and whether the stage ends with it."""

    text: str
    says: str = ""
    files: Mapping[str, str | None] | None = None
    addresses: Sequence[str] = ()
    outcome: Mapping[str, Any] | None = None


class Tools(Protocol):
    """What a stage may do."""

    @property
    def specs(self) -> Sequence[ToolSpec]: ...

    def run(self, call: ToolCall, stage: Stage) -> Result:
        """The result of a call, a refused one included. Files are written by the caller."""


def converse(
    stage: Stage,
    state: State,
    tools: Tools,
    model: Model,
    *,
    record: Callable[[dict[str, Any]], None],
    guard: Callable[[], None],
) -> Mapping[str, Any]:
    """Go on with a stage until it ends, and return its outcome. `record` journals an entry, applies it to the state and writes
    its files. `guard` raises when the run must stop; it is asked before every answer that costs something."""
    if stage.outcome is not None:
        return stage.outcome
    as_json = state.settings.json_actions
    system = f"{stage.system}\n\n{_json_manual(tools.specs)}" if as_json else stage.system
    while True:
        for call in stage.pending:
            result = tools.run(call, stage)
            record(
                {
                    "kind": "tool",
                    "call": call.id,
                    "name": call.name,
                    "text": result.text,
                    "says": result.says,
                    "files": dict(result.files or {}),
                    "addresses": list(result.addresses),
                    **({"outcome": dict(result.outcome)} if result.outcome is not None else {}),
                }
            )
            if result.outcome is not None:
                return result.outcome
        if stage.malformed >= MALFORMED_MAX:
            return {"status": "failed", "why": f"the model called no tool {MALFORMED_MAX} times in a row"}
        if stage.replies >= state.settings.turns:
            return {"status": "failed", "why": f"not finished after {stage.replies} answers"}
        if stage.malformed and stage.messages[-1].role == "assistant":
            record({"kind": "say", "text": _NO_ACTION.format(names=", ".join(one.name for one in tools.specs))})
        guard()
        reply = _asked(stage, state, system, tools, model, record)
        record(model_entry(reply))


def _asked(
    stage: Stage, state: State, system: str, tools: Tools, model: Model, record: Callable[[dict[str, Any]], None]
) -> Reply:
    if estimated_tokens(system, stage.messages) > state.settings.context_tokens:
        record({"kind": "compact", "keep": _KEPT_MESSAGES})
    kept = _KEPT_MESSAGES
    while True:
        try:
            if state.settings.json_actions:
                reply = model.ask(system, _as_text(stage.messages), schema=_action_schema(tools.specs))
            else:
                reply = model.ask(system, stage.messages, tools=tools.specs)
            break
        except ContextOverflowError:
            if kept == 0:
                raise
            kept = kept // 2
            record({"kind": "compact", "keep": kept})
    calls = reply.calls[:CALLS_MAX] or _written_calls(reply.text, stage.replies, {one.name for one in tools.specs})
    return Reply(
        text=reply.text,
        calls=_distinct(calls, stage),
        usage=reply.usage,
        echo=reply.echo if len(reply.calls) <= CALLS_MAX else "",
    )


def _distinct(calls: Sequence[ToolCall], stage: Stage) -> tuple[ToolCall, ...]:
    """Some endpoints number the calls of every answer anew; a result must find its own call."""
    used = {call.id for message in stage.messages for call in message.calls}
    taken: list[ToolCall] = []
    for number, call in enumerate(calls):
        clash = not call.id or call.id in used or any(call.id == one.id for one in taken)
        taken.append(ToolCall(id=f"{stage.replies}-{number}", name=call.name, arguments=call.arguments) if clash else call)
    return tuple(taken)


def _written_calls(text: str, number: int, known: set[str]) -> tuple[ToolCall, ...]:
    """An action that a model wrote as JSON in its answer: `{"tool": NAME, "arguments": {…}}`, alone or in a fence."""
    for piece in [text.strip(), *_ACTION.findall(text)]:
        try:
            found = json.loads(piece)
        except (ValueError, RecursionError):
            continue
        if not isinstance(found, dict):
            continue
        found = found["action"] if isinstance(found.get("action"), dict) else found
        name = found.get("tool") or found.get("name")
        arguments = found.get("arguments", found.get("args"))
        if name in known and isinstance(arguments, dict):
            return (ToolCall(id=f"json-{number}", name=str(name), arguments=arguments),)
    return ()


def _as_text(messages: Sequence[Message]) -> list[Message]:
    """The conversation for a model that knows no tool messages: results are what the user says."""
    return [
        Message(role="user", text=f"Result of {one.name}:\n{one.text}")
        if one.role == "tool"
        else Message(role=one.role, text=one.text)
        for one in messages
    ]


def _action_schema(specs: Sequence[ToolSpec]) -> dict[str, Any]:
    """One action, with the arguments of its own tool: where answers are held to a schema, no argument is missing."""
    actions = [
        {
            "type": "object",
            "properties": {"tool": {"type": "string", "const": one.name}, "arguments": dict(one.parameters)},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for one in specs
    ]
    return {
        "type": "object",
        "properties": {"action": {"anyOf": actions}},
        "required": ["action"],
        "additionalProperties": False,
    }


def _json_manual(specs: Sequence[ToolSpec]) -> str:
    lines = ['Answer with one JSON object and nothing else: {"action": {"tool": NAME, "arguments": {…}}}. The tools:']
    lines += [
        f"- {one.name}: {one.description}\n  arguments: {json.dumps(one.parameters.get('properties', {}))}" for one in specs
    ]
    return "\n".join(lines)
