"""What agent hosts say to a hook, and the shape in which they want its answer.

Looked up in November 2026: Claude Code, code.claude.com/docs/en/hooks; Codex, developers.openai.com/codex/hooks and the schemas
in `codex-rs/hooks/schema` (an unknown key fails the hook); Gemini CLI, `docs/hooks/reference.md` (nothing but JSON may stand on
standard output); Cursor, cursor.com/docs/agent/hooks (a prompt hook cannot inject, a session hook can). Imported on every
prompt: nothing of `typing`, `json` or `dataclasses` here.
"""

from __future__ import annotations

from _json import encode_basestring_ascii as quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

HOSTS: Final = ("claude-code", "codex", "gemini", "cursor")

CAPTURE: Final = "Capture"
"""Something ended: what was said is read for what should be remembered."""

EVENTS: Final[dict[str, dict[str, str]]] = {
    "claude-code": {
        "UserPromptSubmit": "UserPromptSubmit", "SessionStart": "SessionStart", "Stop": CAPTURE, "SessionEnd": CAPTURE,
        "PreCompact": CAPTURE,
    },
    "codex": {"UserPromptSubmit": "UserPromptSubmit", "SessionStart": "SessionStart", "Stop": CAPTURE},
    "gemini": {
        "BeforeAgent": "UserPromptSubmit", "SessionStart": "SessionStart", "SessionEnd": CAPTURE, "PreCompress": CAPTURE,
    },
    "cursor": {"sessionStart": "SessionStart"},
}  # fmt: skip
"""Host -> its name of an event that can inject, or ends something -> ours. Any other event is answered with nothing."""

TOKENS_MAX: Final = {"claude-code": 2_000, "codex": 2_000, "gemini": 2_000, "cursor": 2_000}
"""Of one block. Codex cuts at 2,500 tokens; the estimate of tokens is a rough one."""

SESSION_ID_MAX_CHARS: Final = 200


class Event:
    """One call of a host, in our words."""

    __slots__ = ("cwd", "host", "name", "named", "prompt", "renewed", "session_id", "transcript")

    def __init__(
        self,
        *,
        host: str,
        named: str,
        name: str,
        session_id: str | None,
        cwd: str | None,
        prompt: str,
        renewed: bool,
        transcript: str | None,
    ) -> None:
        self.host = host
        self.named = named
        """As the host calls it; it has to be in the answer."""
        self.name = name
        """`SessionStart`, `UserPromptSubmit` or CAPTURE."""
        self.session_id = session_id
        self.cwd = cwd
        self.prompt = prompt
        self.renewed = renewed
        """The session's context was emptied or summed up: what it was told before is gone."""
        self.transcript = transcript
        """The file with what was said."""


def event_of(told: Any, host: str | None) -> Event | None:
    """What the host asks; None when there is nothing to inject into. ValueError for what no host says."""
    if not isinstance(told, dict):
        raise ValueError(f"the host sent no JSON object but {type(told).__name__}")  # noqa: TRY004  a host's, not a caller's
    named = _text(told, "hook_event_name")
    host = host or _guessed(told, named)
    name = EVENTS[host].get(named)
    if name is None:
        return None
    prompt = _text(told, "prompt") or _text(told, "user_prompt")
    if name == "UserPromptSubmit" and not prompt.strip():
        return None
    session = _text(told, "session_id") or _text(told, "conversation_id")
    return Event(
        host=host,
        named=named,
        name=name,
        session_id=session[:SESSION_ID_MAX_CHARS] or None,
        cwd=_folder(told, host),
        prompt=prompt,
        renewed=_text(told, "source") in ("clear", "compact"),
        transcript=_text(told, "transcript_path") or None,
    )


def answer(event: Event, context: str, *, plain: bool) -> str:
    """`context` as the host wants it: JSON in ASCII, one line; or as it is."""
    if plain and event.host in ("claude-code", "codex"):
        return context if context.endswith("\n") else context + "\n"
    if event.host == "cursor":
        return f'{{"additional_context": {quoted(context)}}}\n'
    return (
        f'{{"hookSpecificOutput": {{"hookEventName": {quoted(event.named)}, "additionalContext": {quoted(context)}}}}}\n'
    )  # fmt: skip


def _guessed(told: dict[Any, Any], named: str) -> str:
    """Without `--host`: by what only one of them sends."""
    if "cursor_version" in told or named[:1].islower():
        return "cursor"
    if "timestamp" in told or named == "BeforeAgent":
        return "gemini"
    return "codex" if "turn_id" in told else "claude-code"


def _folder(told: dict[Any, Any], host: str) -> str | None:
    """Where the session is. Cursor names the folders of its window; a hook of the user runs in `~/.cursor` there, so that the
    process's own folder says nothing: `/`, which is no project."""
    cwd = _text(told, "cwd")
    roots = told.get("workspace_roots")
    if not cwd and isinstance(roots, list) and roots and isinstance(roots[0], str):
        cwd = roots[0]
    return cwd or ("/" if host == "cursor" else None)


def _text(told: dict[Any, Any], name: str) -> str:
    value = told.get(name)
    return value if isinstance(value, str) else ""
