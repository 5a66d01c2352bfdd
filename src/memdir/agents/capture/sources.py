"""What else says why things are as they are: guide files of agents, decision records, the git log.

Decision records: Nygard's form and MADR (adr.github.io): a title, and a section `Decision` or `Decision Outcome`. Commits:
those whose message gives a reason.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from memdir.agents.capture.candidates import is_safe
from memdir.agents.capture.guides import STRONG, rules_of
from memdir.core.errors import UsageError
from memdir.core.frontmatter import parse
from memdir.memory.agent_sessions import Candidate
from memdir.memory.assistants import claude_code_type
from memdir.store.text.sentences import sentences

GUIDES: Final = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", ".cursorrules", ".windsurfrules", ".github/copilot-instructions.md")
GUIDE_FOLDERS: Final = (".cursor/rules", ".claude/rules", ".github/instructions")
ADR_FOLDERS: Final = (
    "docs/adr", "doc/adr", "docs/adrs", "docs/decisions", "docs/architecture/decisions", "doc/architecture/decisions", "adr",
    "decisions",
)  # fmt: skip
COMMITS_MAX: Final = 5_000
"""That are looked at, newest first."""
REASONS_MAX: Final = 200
"""That are proposed."""
_FILE_MAX_BYTES: Final = 1 << 20
_FILES_MAX: Final = 2_000
_TEXT_MAX_CHARS: Final = 400
_GIT_TIMEOUT_S: Final = 120
_INDEX: Final = "MEMORY.md"
_MEMORY_MAX_CHARS: Final = 2_000
_KIND_OF_TYPE: Final = {"user": "preference", "feedback": "convention", "project": "decision", "reference": "convention"}
_FENCE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_DECISION: Final = re.compile(r"^#{2,4}\s*(?:the )?decision(?: outcome)?\s*:?\s*$", re.IGNORECASE | re.MULTILINE)
_INLINE: Final = re.compile(r"^\*\*decision(?: outcome)?[.:]?\*\*[.:]?\s*(?=\S)", re.IGNORECASE | re.MULTILINE)
_HEADING: Final = re.compile(r"^#{1,4}\s", re.MULTILINE)
_TITLE: Final = re.compile(r"^#\s+(?:(?:adr[- ]?)?\d+[.:)]?\s*[-–—:]?\s*)?(.+)$", re.IGNORECASE | re.MULTILINE)
_NO_MORE: Final = re.compile(r"\b(?:superseded|deprecated|rejected|proposed|draft)\b", re.IGNORECASE)
_STATUS: Final = re.compile(r"^(?:#{2,4}\s*status\s*\n+|\**status\**\s*:\s*)(.+)$", re.IGNORECASE | re.MULTILINE)
_REASON: Final = re.compile(
    r"\b(?:because|since|so that|otherwise|instead of|rather than|turned out|root cause|caused by|due to|the reason|"
    r"to avoid|no longer|weil|damit)\b",
    re.IGNORECASE,
)
_TRAILER: Final = re.compile(r"^[A-Z][A-Za-z-]+: .*$|^\(cherry picked.*$|^git-svn-id.*$", re.MULTILINE)
_ROUTINE: Final = re.compile(
    r"^(?:merge|bump|release|version|update dependenc|revert \"|wip|fixup|squash|typo|chore\(deps\))", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A candidate, where it stands, and when it was said (ISO 8601)."""

    candidate: Candidate
    where: str
    at: str | None = None


def guides(root: Path) -> Iterator[Found]:
    """What the guide files of a project tell agents, each once."""
    files = [root / name for name in GUIDES]
    for folder in GUIDE_FOLDERS:
        files += sorted((root / folder).rglob("*.md*"))[:_FILES_MAX]
    told: set[str] = set()
    for file in files:
        for rule in rules_of(_text(file)):
            if rule.content not in told:
                told.add(rule.content)
                yield Found(candidate=rule, where=str(file.relative_to(root)))


def host_memories(folder: Path) -> Iterator[Found]:
    """What Claude Code keeps of a project in a folder `memory`: one a file, with `name`, `description` and `type` at its head,
    or, where there is none, lists in `MEMORY.md`."""
    files = [file for file in sorted(folder.glob("*.md"))[:_FILES_MAX] if file.name != _INDEX]
    for file in files:
        found = _remembered(_text(file))
        if found is not None:
            yield Found(candidate=found, where=f"{folder.parent.name}/{file.name}", at=_changed(file))
    if not files:
        for rule in rules_of(_text(folder / _INDEX)):
            yield Found(candidate=rule, where=f"{folder.parent.name}/{_INDEX}", at=_changed(folder / _INDEX))


def _remembered(text: str) -> Candidate | None:
    about = claude_code_type(text)
    body = " ".join(STRONG.sub("", parse(text)[1]).split())
    if about is None or not body or len(body) > _MEMORY_MAX_CHARS:
        return None
    return _safe(Candidate(kind=_KIND_OF_TYPE[about], content=body, score=3.0))


def _changed(file: Path) -> str | None:
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat()
    except OSError:
        return None


def decisions(root: Path) -> Iterator[Found]:
    """What decision records decided, one each. Superseded and rejected ones are left out."""
    for folder in ADR_FOLDERS:
        for file in sorted((root / folder).glob("*.md"))[:_FILES_MAX]:
            found = _decided(_text(file))
            if found is not None:
                yield Found(candidate=found, where=str(file.relative_to(root)))


def _decided(text: str) -> Candidate | None:
    title = _TITLE.search(text)
    section = _DECISION.search(text) or _INLINE.search(text)
    status = _STATUS.search(text)
    if title is None or section is None or (status is not None and _NO_MORE.search(status[1])):
        return None
    rest = text[section.end() :]
    end = _HEADING.search(rest) or re.search(r"\n\n\*\*\w", rest)
    body = " ".join(_FENCE.sub("", rest[: end.start()] if end else rest).split())
    content = f"Decided: {title[1].strip().rstrip('.')}."
    said = [body[start:stop] for start, stop in list(sentences(body))[:2]]
    for sentence in said:
        if len(content) + len(sentence) >= _TEXT_MAX_CHARS:
            break
        content += f" {sentence}"
    return _safe(Candidate(kind="decision", content=content, score=3.0)) if said else None


def commits(root: Path) -> Iterator[Found]:
    """Messages that give a reason, newest first. UsageError where there is no repository."""
    command = ["git", "-C", str(root), "log", "--no-merges", f"--max-count={COMMITS_MAX}", "-z", "--format=%h%n%cI%n%s%n%b"]
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=_GIT_TIMEOUT_S, env={**os.environ, "LC_ALL": "C.UTF-8"}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git could not be run: {error}", hint="install git") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")
        raise UsageError(f"git says: {said}", hint="name the folder of a repository")
    count = 0
    for entry in done.stdout.decode("utf-8", "replace").split("\0"):
        if count >= REASONS_MAX:
            return
        number, _, rest = entry.strip("\n").partition("\n")
        at, _, message = rest.partition("\n")
        found = _reason(message)
        if found is not None:
            count += 1
            yield Found(candidate=found, where=f"commit {number}", at=datetime.fromisoformat(at).astimezone(UTC).isoformat())


def _reason(message: str) -> Candidate | None:
    """The subject of a commit and the sentence that says why."""
    subject, _, body = message.partition("\n")
    if _ROUTINE.match(subject):
        return None
    paragraphs = _TRAILER.sub("", body).split("\n\n")
    for paragraph in paragraphs:
        text = " ".join(paragraph.split())
        for start, end in sentences(text):
            said = text[start:end]
            if _REASON.search(said) and 6 <= len(said.split()) <= 45 and "?" not in said:
                content = f"{subject.strip().rstrip('.')}: {said}"
                return (
                    _safe(Candidate(kind="decision", content=content, score=2.0)) if len(content) <= _TEXT_MAX_CHARS else None
                )
    return None


def _safe(candidate: Candidate) -> Candidate | None:
    return candidate if is_safe(candidate.content) else None


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(_FILE_MAX_BYTES).decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError:  # most of them are not there
        return ""
