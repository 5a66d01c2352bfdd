"""A language model as the agent: it has the shell of its condition as one tool, and says its answer with another."""

from __future__ import annotations

import time
from typing import Final

from memdir.llm.port import Message, Model, ToolCall, ToolSpec
from memdir_bench.xafs.conditions import Run
from memdir_bench.xafs.policy import Account, Budget, Step

_SHOWN_MAX_CHARS: Final = 30_000
_BASH: Final = ToolSpec(
    name="bash", description="Run a bash command in the working directory and see what it prints.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)  # fmt: skip
_ANSWER: Final = ToolSpec(
    name="answer", description="Give the final answer: the value alone, as short as possible.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)  # fmt: skip
_END: Final = "Files in drafts/ are no longer valid. When you know the answer, give it with the tool `answer`."


def answer(prompt: str, run: Run, model: Model, *, instructions: str, budget: Budget) -> tuple[str, Account]:
    """The model's answer ("" without one within the budget), and what it cost as its provider counts. ModelError."""
    account = Account(context=0)
    until_s = time.monotonic() + budget.seconds
    messages = [Message(role="user", text=prompt)]
    while account.calls < budget.calls and account.tokens < budget.tokens and time.monotonic() < until_s:
        reply = model.ask(f"{instructions} {_END}", messages, tools=(_BASH, _ANSWER))
        account.tokens_in += reply.usage.input_tokens
        account.tokens_cached += reply.usage.cached_tokens
        account.tokens_out += reply.usage.output_tokens
        account.calls += 1
        messages.append(Message(role="assistant", text=reply.text, calls=reply.calls, echo=reply.echo))
        if not reply.calls:
            return reply.text.strip(), account
        for call in reply.calls:
            if call.name == _ANSWER.name:
                return str((call.arguments or {}).get("text", "")).strip(), account
            messages.append(Message(role="tool", text=_called(call, run, account), call_id=call.id, name=call.name))
    return "", account


def _called(call: ToolCall, run: Run, account: Account) -> str:
    """What the command printed, as far as it is shown."""
    command = str((call.arguments or {}).get("command", ""))
    if call.name != _BASH.name or not command:
        return f"there is no such call; use `{_BASH.name}` with a command, or `{_ANSWER.name}` with a text"
    printed = run(command)
    if len(printed) > _SHOWN_MAX_CHARS:
        left_out = len(printed) - _SHOWN_MAX_CHARS
        printed = f"{printed[:_SHOWN_MAX_CHARS]}\n… {left_out:,} characters are left out; look at less at a time …"
    account.transcript.append(Step(command, printed, {}))
    return printed or "[no output]"
