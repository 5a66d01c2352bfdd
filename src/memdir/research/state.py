"""Where a run stands: the fold of its journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from memdir.llm.port import Message, Reply, ToolCall, Usage

DROPPED: Final = "[left out to make room; read the file again if it matters]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run was asked for. Budgets of 0 mean none."""

    rounds: int = 3
    budget_tokens: int = 0
    budget_usd: float = 0.0
    budget_minutes: float = 0.0
    turns: int = 60
    """Of one stage: answers of the model, each with any number of calls."""
    context_tokens: int = 100_000
    """Where the oldest results of tools are dropped from a conversation."""
    json_actions: bool = False
    """Tools by JSON in the text, for models that call none."""

    def as_json(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        return cls(**{one.name: given[one.name] for one in fields(cls) if one.name in given})


@dataclass(slots=True, kw_only=True)
class Stage:
    """One conversation: a round of the builder, the outline, a section, the review."""

    name: str
    system: str = ""
    messages: list[Message] = field(default_factory=list)
    replies: int = 0
    finishes: int = 0
    """How often the model called itself done and was sent back."""
    malformed: int = 0
    """Answers without an action, one after the other."""
    outcome: Mapping[str, Any] | None = None
    """What the stage ended with; None while it goes on."""

    @property
    def pending(self) -> list[ToolCall]:
        """Calls of the last answer that have no result yet."""
        at = next((at for at in range(len(self.messages) - 1, -1, -1) if self.messages[at].role == "assistant"), None)
        if at is None:
            return []
        answered = {one.call_id for one in self.messages[at + 1 :] if one.role == "tool"}
        return [call for call in self.messages[at].calls if call.id not in answered]


@dataclass(slots=True, kw_only=True)
class State:
    """`apply` takes the entries in their order."""

    topic: str = ""
    settings: Settings = field(default_factory=Settings)
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the command was told of models and places."""
    model: str = ""
    places: list[str] = field(default_factory=list)
    stages: dict[str, Stage] = field(default_factory=dict)
    usage: Usage = field(default_factory=lambda: Usage(usd=0.0))
    unpriced: int = 0
    """Answers whose price is not known."""
    replies: int = 0
    searches: int = 0
    fetched: dict[str, str] = field(default_factory=dict)
    """Address to the source that it was archived as."""
    failed: dict[str, str] = field(default_factory=dict)
    """Address to why it could not be fetched."""
    digests: dict[str, str] = field(default_factory=dict)
    """What a model answered of a page: `SOURCE\\nQUESTION` to its answer."""
    addresses: set[str] = field(default_factory=set)
    """What searches returned and archived pages name."""
    written: dict[str, str] = field(default_factory=dict)
    """Files as agents wrote them last; deleted ones are not here."""
    steering: list[str] = field(default_factory=list)
    """Notes of the user that were taken in."""
    checklists: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    """The last of them, for people."""
    outcome: str = ""
    """complete, flagged, no evidence; empty while the run goes on."""
    worked_ms: int = 0
    entries: int = 0
    last_written: Mapping[str, str | None] = field(default_factory=dict)
    updated_ms: int = 0
    _stage: Stage | None = None

    @property
    def stage(self) -> Stage | None:
        """The one that goes on, or ended last."""
        return self._stage

    def apply(self, entry: Mapping[str, Any]) -> None:
        kind = entry["kind"]
        at_ms = int(entry.get("t", 0))
        if kind not in ("start", "resume") and self.updated_ms:
            self.worked_ms += max(at_ms - self.updated_ms, 0)
        self.updated_ms = at_ms
        self.entries += 1
        handler = getattr(self, f"_on_{kind}", None)
        if handler is not None:
            handler(entry)
        files: Mapping[str, str | None] = entry.get("files") or {}
        self.last_written = files
        for path, text in files.items():
            if text is None:
                self.written.pop(path, None)
            else:
                self.written[path] = text

    def _on_start(self, entry: Mapping[str, Any]) -> None:
        self.topic = entry["topic"]
        self._on_resume(entry)

    def _on_resume(self, entry: Mapping[str, Any]) -> None:
        self.settings = Settings.of(entry["settings"])
        self.options = entry.get("options", {})
        self.model = entry["model"]
        self.places = list(entry["places"])
        self.outcome = ""

    def _on_stage(self, entry: Mapping[str, Any]) -> None:
        stage = Stage(name=entry["name"], system=entry["system"], messages=[Message(role="user", text=entry["prompt"])])
        self.stages[stage.name] = self._stage = stage
        self.steering += entry.get("steering", [])
        self._act(f"{stage.name} begins")

    def _on_model(self, entry: Mapping[str, Any]) -> None:
        reply = reply_of(entry)
        if entry.get("purpose") == "digest":
            self.digests[entry["of"]] = reply.text
        else:
            assert self._stage is not None, "answers belong to a stage"
            self._stage.messages.append(Message(role="assistant", text=reply.text, calls=reply.calls, echo=reply.echo))
            self._stage.replies += 1
            self._stage.malformed = 0 if reply.calls else self._stage.malformed + 1
        self.replies += 1
        self.unpriced += reply.usage.usd is None
        self.usage = Usage(
            input_tokens=self.usage.input_tokens + reply.usage.input_tokens,
            output_tokens=self.usage.output_tokens + reply.usage.output_tokens,
            cached_tokens=self.usage.cached_tokens + reply.usage.cached_tokens,
            usd=(self.usage.usd or 0.0) + (reply.usage.usd or 0.0),
        )

    def _on_tool(self, entry: Mapping[str, Any]) -> None:
        assert self._stage is not None, "calls belong to a stage"
        self._stage.messages.append(Message(role="tool", text=entry["text"], call_id=entry["call"], name=entry["name"]))
        self._stage.finishes += entry["name"] == "finish"
        self.searches += entry["name"] == "web_search"
        self.addresses.update(entry.get("addresses", []))
        self._stage.outcome = entry.get("outcome")
        self._act(entry.get("says") or entry["name"])

    def _on_say(self, entry: Mapping[str, Any]) -> None:
        assert self._stage is not None, "is said in a stage"
        self._stage.messages.append(Message(role="user", text=entry["text"]))

    def _on_fetch(self, entry: Mapping[str, Any]) -> None:
        if entry.get("source"):
            self.fetched[entry["url"]] = entry["source"]
            self.failed.pop(entry["url"], None)
        else:
            self.failed[entry["url"]] = entry.get("error", "failed")

    def _on_compact(self, entry: Mapping[str, Any]) -> None:
        assert self._stage is not None, "a conversation is shortened"
        keep = int(entry["keep"])
        messages = self._stage.messages
        for at, one in enumerate(messages[: len(messages) - keep]):
            if one.role == "tool" and len(one.text) > len(DROPPED):
                messages[at] = Message(role="tool", text=DROPPED, call_id=one.call_id, name=one.name)

    def _on_stage_end(self, entry: Mapping[str, Any]) -> None:
        assert self._stage is not None, "what ends began"
        self._stage.outcome = entry["outcome"]
        self.checklists[self._stage.name] = entry["outcome"]
        self._act(f"{self._stage.name} ends: {entry['outcome'].get('status', '')}")

    def _on_end(self, entry: Mapping[str, Any]) -> None:
        self.outcome = entry["outcome"]

    def _act(self, text: str) -> None:
        self.actions.append(text)
        del self.actions[:-8]


def folded(entries: Iterable[Mapping[str, Any]]) -> State:
    state = State()
    for entry in entries:
        state.apply(entry)
    return state


def model_entry(reply: Reply, **more: Any) -> dict[str, Any]:
    """The journal's form of an answer."""
    return {
        "kind": "model",
        "text": reply.text,
        "calls": [{"id": one.id, "name": one.name, "arguments": one.arguments} for one in reply.calls],
        "usage": [reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens],
        "usd": reply.usage.usd,
        "echo": reply.echo,
        **more,
    }


def reply_of(entry: Mapping[str, Any]) -> Reply:
    given, taken, cached = entry["usage"]
    return Reply(
        text=entry["text"],
        calls=tuple(ToolCall(id=one["id"], name=one["name"], arguments=one["arguments"]) for one in entry["calls"]),
        usage=Usage(input_tokens=given, output_tokens=taken, cached_tokens=cached, usd=entry["usd"]),
        echo=entry["echo"],
    )
