"""What of a session a later one should know, by rules: corrections and preferences of the user, conventions, decisions,
causes with their fix, commands that worked after others failed.

Rules and weights were made on one half of the transcripts of `memdir bench agents`. Output of tools is never read for
statements: it is written by others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from memdir.agents.capture.transcripts import ASSISTANT, COMMAND, USER, Turn
from memdir.core.secrets import kinds
from memdir.memory.agent_sessions import CODE, SCORE_MIN, TEXT_MAX_CHARS, WORDS_MIN, Candidate, as_sentence, candidates_in, fits
from memdir.memory.guard import is_instruction
from memdir.store.text.sentences import sentences

CANDIDATES_MAX: Final = 5
"""Of one session: who reviews them has other things to do."""
_NEXT_COMMANDS: Final = 6
_ERROR_MAX_CHARS: Final = 120


def candidates(turns: Sequence[Turn]) -> list[Candidate]:
    """The best of a session, at most CANDIDATES_MAX, in its order. Pure."""
    found: dict[str, Candidate] = {}
    for at, turn in enumerate(turns):
        if turn.kind == USER:
            some = list(candidates_in(turn.text))
        elif turn.kind == ASSISTANT:
            some = list(_from_assistant(turn.text))
        else:
            some = list(_from_commands(turns[at : at + 1 + _NEXT_COMMANDS * 3]))
        for one in some:
            if is_safe(one.content):
                found.setdefault(one.content.casefold(), one)
    best = sorted(found.values(), key=lambda one: -one.score)[:CANDIDATES_MAX]
    return [one for one in found.values() if one in best]


def is_safe(text: str) -> bool:
    """Whether it holds no secret, and no order to a model."""
    return not kinds(text) and not is_instruction(text)


def convention_of(item: str) -> Candidate | None:
    """An item of a guide file: there everything is meant to last."""
    bare = item.strip()
    if len(bare.split()) < WORDS_MIN or not fits(bare) or not is_safe(bare):
        return None
    return Candidate(kind="convention", content=as_sentence(bare), score=SCORE_MIN)


# --- what the agent found out ------------------------------------------------------------------------------------------

_CAUSE: Final = re.compile(
    r"\broot cause\b|\b(?:was|were|is|are) (?:caused by|due to)\b|\bturned out\b|\b(?:the )?(?:bug|issue|problem|"
    r"reason|culprit)\b[^.]{0,60}\b(?:was|is)\b|\bcame from\b|\bhappened (?:because|since|when)\b|\b(?:failed|broke|"
    r"crashed|saw|was sent|were skipped|hung|leaked)\b[^.]{0,80}\b(?:because|since|when)\b|\bwhich is why\b|"
    r"\bwere (?:skipped|lost|wrong|missed)\b|\bdoes not understand\b",
    re.IGNORECASE,
)
_FIX: Final = re.compile(
    r"\b(?:fix(?:ed|es)?|solve[sd]?|resolve[sd]?|takes? care|added|adding|moved|moving|removed|removing|replaced|now|"
    r"strip(?:ping|ped)|has to be|have to be|makes? it|normalis|sorts?|guard(?:ed)?|set(?:ting)?)\b",
    re.IGNORECASE,
)
_HEDGED: Final = re.compile(
    r"\b(?:might|may be|maybe|could be|possibl[ey]|perhaps|not sure|probably|i forgot|i was wrong|typo|comma|unused|"
    r"missing import|let me|i['’]ll|i will|i(?:['’]m| am) going)\b|\?",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(r"[\w)]\.\w|\w_\w|\w\(\)|`[^`]+`|/\w|[a-z][A-Z]|\b[A-Z]{2,}\b|\d")
_CAUSEWORDS_MIN: Final = 9


def _from_assistant(text: str) -> Iterator[Candidate]:
    bare = CODE.sub("", text[:20_000])
    spans = list(sentences(bare))
    for at, (start, end) in enumerate(spans):
        said = " ".join(bare[start:end].split())
        if not _CAUSE.search(said) or _HEDGED.search(said):
            continue
        fix = _FIX.search(said) is not None
        if at + 1 < len(spans):
            following = " ".join(bare[slice(*spans[at + 1])].split())
            if _FIX.search(following) and not _HEDGED.search(following) and len(said) + len(following) < TEXT_MAX_CHARS:
                said = f"{said} {following}"
                fix = True
        if fix and len(said.split()) >= _CAUSEWORDS_MIN and len(said) <= TEXT_MAX_CHARS and _NAMED.search(said):
            yield Candidate(kind="cause", content=as_sentence(said.lstrip("-*# ")), score=3.0)


# --- what worked -------------------------------------------------------------------------------------------------------

_ERROR_LINE: Final = re.compile(
    r"error|fail|not found|undefined|cannot|can't|unsupported|required|refused|no such|doesn|has no|denied",
    re.IGNORECASE,
)
_PROGRAM: Final = re.compile(
    r"(?:^|&&|\|\||;)\s*(?:[A-Z_][A-Z0-9_]*=\S+\s+)*(?:sudo |npx |bundle exec |uv run |poetry run )*(\S+)(?:\s+(\w\S*))?"
)
_TRIVIAL: Final = frozenset(
    """
    cd ls cat echo grep rg find sed head tail pwd which mkdir rm cp mv git true test touch python python3 node
    """.split()  # noqa: SIM905
)


def _from_commands(turns: Sequence[Turn]) -> Iterator[Candidate]:
    """The first command behind a failed one that does the same and does not fail."""
    failed = turns[0]
    if failed.kind != COMMAND or not failed.failed:
        return
    programs = _programs(failed.text)
    later = [turn for turn in turns[1:] if turn.kind == COMMAND][:_NEXT_COMMANDS]
    for turn in later:
        if turn.failed or turn.text == failed.text or not programs & _programs(turn.text):
            continue
        added = set(turn.text.split()) - set(failed.text.split())
        if not added or "\n" in turn.text or len(turn.text) > TEXT_MAX_CHARS // 2 or len(failed.text) > TEXT_MAX_CHARS // 2:
            return
        lines = [line.strip() for line in failed.output.splitlines() if line.strip()]
        error = next((line for line in lines if _ERROR_LINE.search(line)), lines[-1] if lines else "")
        why = f" with: {error[:_ERROR_MAX_CHARS]}" if error else ""
        yield Candidate(kind="command", content=f"Run `{turn.text}`: `{failed.text}` alone fails{why}", score=2.5)
        return


def _programs(command: str) -> set[str]:
    return {found[1] for found in _PROGRAM.finditer(command) if found[1] not in _TRIVIAL}
