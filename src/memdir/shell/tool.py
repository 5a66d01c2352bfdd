"""The shell as one tool for models: its definition for OpenAI, Anthropic and MCP, and how a result is told to a model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, Field

from memdir.agents.mcp.tools import Arguments, Around, Outcome, Tool, plain_schema

if TYPE_CHECKING:
    from memdir.shell.interpreter import ShellResult
    from memdir.shell.shell import Shell

NAME: Final = "bash"
_COMMAND_MAX_CHARS: Final = 200_000
SHOWN_MAX_CHARS: Final = 30_000
"""About 8,000 tokens."""


def description(name: str) -> str:
    """What a model is told of the tool over the memory `name`."""
    return (
        f"Run a bash script in the user's memory, a folder of files at /{name}, which is the working directory at first. "
        "Variables, functions and the working directory last from call to call. The usual commands are there (ls, cat, grep, "
        'sed, awk, find, jq, diff, tar and so on), python is not. `memdir grep "QUESTION" [PATH]` finds lines by meaning and '
        "prints path:line:text; use it first when you do not know the words. With `--containing 'NAME'` it prints only lines "
        "that hold the name, what answers the question first. `cat profile.md` says who the user is. What is written is kept "
        "and synced; /tmp is not."
    )


class BashArguments(Arguments):
    command: Annotated[str, Field(min_length=1, max_length=_COMMAND_MAX_CHARS, description="the script")]


def parameters() -> dict[str, Any]:
    """The JSON schema of the tool's arguments."""
    return plain_schema(BashArguments.model_json_schema())


def openai_tool(name: str) -> dict[str, Any]:
    """For `tools` of OpenAI's chat completions, and of servers that speak like it."""
    return {"type": "function", "function": {"name": NAME, "description": description(name), "parameters": parameters()}}


def anthropic_tool(name: str) -> dict[str, Any]:
    """For `tools` of Anthropic's messages."""
    return {"name": NAME, "description": description(name), "input_schema": parameters()}


def told(result: ShellResult, *, max_chars: int = SHOWN_MAX_CHARS) -> str:
    """A result in words for a model: output, errors, the exit code when it is not 0; the middle of what is too long is cut out,
    with how to see it."""
    parts = [result.stdout.rstrip("\n")] if result.stdout else []
    parts += [result.stderr.rstrip("\n")] if result.stderr else []
    text = "\n".join(parts)
    if len(text) > max_chars or result.truncated:
        half = max_chars // 2
        left_out = max(0, len(text) - 2 * half)
        note = f"… {left_out:,} characters are left out here" + (", and more was not kept" if result.truncated else "")
        note += (
            "; to see more, write the output to a file (`COMMAND > /tmp/out`) and look at parts (`sed -n 1,100p /tmp/out`) …"
        )
        text = f"{text[:half]}\n{note}\n{text[len(text) - half :]}" if left_out else f"{text}\n{note}"
    if result.exit_code:
        text = f"{text}\n[exit code {result.exit_code}]".lstrip("\n")
    return text or "[no output]"


class BashAnswer(BaseModel):
    stdout: str
    stderr: str
    exit_code: int
    truncated: bool


def mcp_tool(name: str, open_shell: Callable[[], Shell]) -> tuple[Tool, Callable[[], None]]:
    """The tool for our MCP server, and what ends its shell. The shell is opened by the first call."""
    opened: list[Shell] = []
    opening = threading.Lock()

    def shell() -> Shell:
        with opening:
            if not opened:
                opened.append(open_shell())
            return opened[0]

    def run(_around: Around, arguments: BashArguments) -> Outcome:
        result = shell().run_sync(arguments.command)
        answer = BashAnswer(
            stdout=result.stdout[:SHOWN_MAX_CHARS], stderr=result.stderr[:SHOWN_MAX_CHARS], exit_code=result.exit_code,
            truncated=result.truncated or len(result.stdout) > SHOWN_MAX_CHARS or len(result.stderr) > SHOWN_MAX_CHARS,
        )  # fmt: skip
        return Outcome(text=told(result), data=answer)

    def close() -> None:
        with opening:
            while opened:
                opened.pop().close()

    tool = Tool(
        name=NAME, title="Shell in the memory", description=description(name), arguments=BashArguments, answer=BashAnswer,
        run=run, reads_only=False, destroys=True, repeatable=False,
    )  # fmt: skip
    return tool, close
