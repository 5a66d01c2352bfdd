"""`memdir memory review|confirm|history`: what waits for a decision, and what a memory said before."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.editor import edited, editor
from memdir.cli.memory.options import NONE, add_container, add_project, checked_id, chosen_project, memories_of, there
from memdir.cli.text import is_terminal, plural, visible
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.agents.service import AgentMemories, Memory, Question
    from memdir.cli.output import Output

_LIMIT_MAX: Final = 100
_ASKED: Final = {
    "proposed": "Noticed in a session. Keep it?",
    "untrusted": "From what others wrote, or reads like an order to a model. May it be given to an agent unasked?",
    "may_replace": "May contradict an older memory. Does it take its place?",
}
_KEYS: Final = {
    "proposed": "[k]eep  [e]dit and keep  [d]rop",
    "untrusted": "[k]eep and trust  [e]dit and trust  [d]rop",
    "may_replace": "[m]erge: the newer one takes its place  [k]eep both  [e]dit the newer one  [d]rop the newer one",
}


def _configure_review(parser: Parser) -> None:
    parser.add_argument(
        "-n", "--limit", metavar="N", type=bounded_int(1, _LIMIT_MAX), default=20, help="at most N questions (default: 20)"
    )
    parser.add_argument("--all", action="store_true", help="of all projects, not of this folder's and of none")
    parser.add_argument("--list", action="store_true", help="only list them, as without a terminal")
    add_project(parser)
    add_container(parser)


def _review(args: argparse.Namespace, out: Output) -> int:
    memories = memories_of(args, out)
    questions, total = memories.review(project=None if args.all else chosen_project(args, memories), limit=args.limit)
    if out.json:
        out.document({"questions": questions, "total": total})
    elif not questions:
        out.note("nothing waits for a decision")
    elif args.list or not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        for one in questions:
            _show(one, out)
        if total > len(questions):
            out.note(f"{total - len(questions)} more: --limit")
    else:
        _ask_all(memories, questions, out)
    return EXIT_OK if questions else EXIT_NOTHING


def _show(one: Question, out: Output) -> None:
    memory = one["memory"]
    said = f", said {plural(memory['seen'], 'time')}" if memory["seen"] > 1 else ""
    head = f"{memory['createdAt'][:10]} {memory['project'] or NONE}, by {memory['storedBy']}{said}"
    out.line(f"{out.style(visible(head), 'bold')}  {memory['id']}")
    for line in memory["content"].split("\n"):
        out.line(f"   {visible(line)}")
    if one["other"] is not None:
        out.line(f"   {out.style('older:', 'dim')} {visible(' '.join(one['other']['content'].split()))}  {one['other']['id']}")
    out.line(f"   {_ASKED[one['kind']]}")


def _ask_all(memories: AgentMemories, questions: list[Question], out: Output) -> None:
    for number, one in enumerate(questions, 1):
        out.line(out.style(f"({number} of {len(questions)})", "dim"))
        _show(one, out)
        while True:
            answer = _asked(f"   {_KEYS[one['kind']]}  [s]kip  [q]uit: ")
            if answer == "q":
                return
            if _done(memories, one, answer, out):
                break


def _asked(prompt: str) -> str:
    try:
        return input(prompt).strip().casefold()[:1]
    except EOFError:
        return "q"


def _done(memories: AgentMemories, one: Question, answer: str, out: Output) -> bool:
    """Whether the answer was one, and is carried out."""
    memory = one["memory"]
    if answer == "s":
        return True
    if answer == "k":
        memories.confirm(memory["id"])
    elif answer == "d":
        memories.delete(memory["id"])
    elif answer == "e":
        with edited(memory["content"] + "\n", editor(), out) as text:
            if not text.strip():
                raise UsageError("a memory needs some text", hint="answer d to drop it")
            if text.strip() != memory["content"].strip():
                memories.edit(memory["id"], content=text)
            memories.confirm(memory["id"])
    elif answer == "m" and one["other"] is not None:
        _merge(memories, memory, one["other"])
    else:
        return False
    return True


def _merge(memories: AgentMemories, newer: Memory, older: Memory) -> None:
    """The older memory says what the newer one says, with its former text in its history; the newer one goes."""
    memories.store(newer["content"], tags=newer["tags"], project=older["project"], supersedes=[older["id"]])
    memories.delete(newer["id"])


def _configure_confirm(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="+", type=checked_id, help="the ids, as `memdir memory list` shows them")
    add_container(parser)


def _confirm(args: argparse.Namespace, out: Output) -> int:
    from memdir.agents.service import stored_by

    memories = memories_of(args, out)
    confirmed = [there(lambda one=one: memories.confirm(one, stored_by=stored_by())) for one in args.id]  # type: ignore[misc]
    if out.json:
        out.document(confirmed)
    else:
        for memory in confirmed:
            out.line(f"{memory['id']}  {out.name(memory['path'])}")
    return EXIT_OK


def _configure_history(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", type=checked_id, help="the id, as `memdir memory list` shows it")
    add_container(parser)


def _history(args: argparse.Namespace, out: Output) -> int:
    memories = memories_of(args, out)
    there(lambda: memories.get(args.id))
    found = memories.history(args.id)
    if out.json:
        out.document(found)
        return EXIT_OK
    for one in found["versions"]:
        until = f"until {one['until'][:16].replace('T', ' ')}" if one["until"] else "now"
        since = one["since"][:16].replace("T", " ")
        out.line(f"{out.style(f'from {since} {until}', 'bold')}  by {visible(one['storedBy'])}")
        for line in one["content"].split("\n"):
            out.line(f"   {visible(line)}")
    return EXIT_OK


_ID: Final = "01JD3Y6T0V8Q9W3N5K7M1P2R4S"
REVIEW = Command(
    name="memory review",
    usage="[OPTIONS]",
    description=(
        "Decide what waits: what was noticed in sessions and may be worth keeping (the inbox), what comes from others and is\n"
        "not trusted, what may contradict an older memory. At a terminal one key each; else a list."
    ),
    examples=[
        ("memdir memory review", "of this folder's project, one after the other"),
        ("memdir memory review --all --json", "of all projects, for programs"),
    ],
    exit_codes=[(0, "there was something to decide"), (1, "there was nothing")],
    configure=_configure_review,
    run=_review,
)
CONFIRM = Command(
    name="memory confirm",
    usage="[OPTIONS] ID ...",
    description=(
        "Say that memories hold: what was proposed is kept, what was not trusted is from now on, and the day is shown with\n"
        "each. What is not trusted only a person confirms, not an agent that runs this command."
    ),
    examples=[(f"memdir memory confirm {_ID}", "one memory")],
    exit_codes=[(0, "they are confirmed"), (2, "there is no such memory, or another error")],
    configure=_configure_confirm,
    run=_confirm,
)
HISTORY = Command(
    name="memory history",
    usage="[OPTIONS] ID",
    description="Show what a memory says and what it said before, newest first, with who said it and when.",
    examples=[(f"memdir memory history {_ID}", "all texts")],
    exit_codes=[(0, "it is there"), (2, "there is no such memory, or another error")],
    configure=_configure_history,
    run=_history,
)
