"""The checks that need no model. They gate what agents call finished, and `memdir research check` runs them all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memdir.research import outline as plans
from memdir.research.archive import Archive, text_hash
from memdir.research.citations import SPAN_MAX_LINES, Citation, Sentence, citations, sentences, span_hash
from memdir.research.evidence import is_factual, missing
from memdir.research.workspace import (
    CHECKS,
    INDEX,
    NOTES,
    OUTLINE,
    REPORT,
    REPORT_HTML,
    SECTIONS,
    SOURCES,
    STATE,
    TOPIC,
    Workspace,
)

FINDINGS_MAX: Final = 1000
_COVERED_BEFORE: Final = 2
"""How many sentences before it a citation may bear: authors cite once for a thought of two or three sentences."""
NO_EVIDENCE: Final = "No evidence was found for this section."
_PLACEHOLDER: Final = re.compile(
    r"(?:(?:source|note|file|page|doc|document|untitled|temp|tmp|new|test|foo|bar|misc|stuff|data|info|notes|sources|placeholder|"
    r"todo|content|text|article|section|part|item|draft)s?[-_ ]?\d*|\d+|[a-z])",
    re.I,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`check` is the name of the rule; `line` counts from 1, 0 where the whole file is meant."""

    check: str
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line or 1}: {self.message} [{self.check}]"

    def as_json(self) -> dict[str, Any]:
        return {"check": self.check, "path": self.path, "line": self.line, "message": self.message}


class Checks:
    """All over one workspace."""

    def __init__(self, workspace: Workspace, archive: Archive) -> None:
        self._workspace = workspace
        self._archive = archive
        self._topic = workspace.read(TOPIC) or ""

    def everything(self, *, written: Iterable[str] = ()) -> list[Finding]:
        """`written` are the files that agents wrote by their tools, as the journal tells; what else is there is found."""
        found = [*self.knowledge_base(), *self.sources(), *self.unknown_files(written)]
        if self._workspace.read(OUTLINE) is not None:
            found += self.outline()
            for section in plans.sections(self._workspace.read(OUTLINE) or ""):
                found += self.section(section)
        report = self._workspace.read(REPORT)
        if report is not None:
            found += self.text(REPORT, report, strict=True)
            found += self._assembled(report)
        return found[:FINDINGS_MAX]

    # --- the knowledge base

    def knowledge_base(self) -> list[Finding]:
        """Hierarchy, names, and that every note cites pages that bear it."""
        index = self._workspace.read(INDEX) or ""
        notes = self._workspace.notes()
        found = [*self._hierarchy(index, notes)]
        for path in notes:
            found += self.note(path, self._workspace.read(path) or "")
        return found

    def note(self, path: str, text: str) -> list[Finding]:
        """What is wrong with one note, written or to be written."""
        found = [*self._names(path)]
        if path not in plans.hierarchy(self._workspace.read(INDEX) or ""):
            message = f"is not in the {plans.HIERARCHY} of {INDEX}: add '- {path}' there"
            found.append(Finding(check="hierarchy", path=path, line=0, message=message))
        if not any(True for _ in citations(text)):
            message = "no citation: put the lines of sources/ behind each claim, as [sources/NAME.md#L3-L5]"
            found.append(Finding(check="traceability", path=path, line=0, message=message))
        return found + self.text(path, text, strict=False)

    def todos(self) -> list[Finding]:
        """What is planned and not complete; also that nothing is planned."""
        listed = plans.todos(self._workspace.read(INDEX) or "")
        if not listed:
            message = f"no question is listed under '## {plans.TODO}': write them as '- [ ] QUESTION'"
            return [Finding(check="todo", path=INDEX, line=0, message=message)]
        return [
            Finding(check="todo", path=INDEX, line=todo.line, message=f"{todo.status}: {todo.text[:200]}")
            for todo in listed
            if todo.status != "complete"
        ]

    def _hierarchy(self, index: str, notes: Sequence[str]) -> Iterator[Finding]:
        planned = plans.hierarchy(index)
        if not index:
            yield Finding(check="hierarchy", path=INDEX, line=0, message=f"there is no {INDEX}")
        for path, line in planned.items():
            if path not in notes:
                yield Finding(check="hierarchy", path=INDEX, line=line, message=f"{path} is planned and does not exist")

    def _names(self, path: str) -> Iterator[Finding]:
        for part in path.split("/")[1:]:
            if _PLACEHOLDER.fullmatch(part.removesuffix(".md")):
                yield Finding(check="placeholder", path=path, line=0, message=f"{part!r} does not say what is in it")
        if not path.endswith(".md"):
            yield Finding(check="placeholder", path=path, line=0, message="notes are Markdown and end in .md")

    def sources(self) -> list[Finding]:
        """Every page is as it was fetched, and is cited or listed as unused."""
        cited = {one.path for path in self._workspace.notes() for _line, one in citations(self._workspace.read(path) or "")}
        listed = plans.unused(self._workspace.read(INDEX) or "")
        found = []
        for source in self._archive.all():
            if text_hash(source.text) != source.text_hash:
                found.append(Finding(check="immutable", path=source.path, line=0, message="was changed after it was fetched"))
            if source.path not in cited and source.path not in listed:
                message = f"neither cited by a note nor listed under {plans.UNUSED} in {INDEX}"
                found.append(Finding(check="unused", path=source.path, line=0, message=message))
        return found

    # --- the report

    def outline(self) -> list[Finding]:
        """A title, sections, and for each the notes that it is written from."""
        text = self._workspace.read(OUTLINE) or ""
        found = []
        if not plans.title(text):
            found.append(Finding(check="outline", path=OUTLINE, line=0, message="the first line must be '# TITLE'"))
        listed = plans.sections(text)
        if not listed:
            found.append(Finding(check="outline", path=OUTLINE, line=0, message="no section: each begins with '## TITLE'"))
        if len(listed) > plans.SECTIONS_MAX:
            found.append(Finding(check="outline", path=OUTLINE, line=0, message=f"more than {plans.SECTIONS_MAX} sections"))
        notes = set(self._workspace.notes())
        for section in listed:
            wrong = [f"{path} does not exist" for path in section.notes if path not in notes]
            if not section.notes and "no evidence" not in section.brief.casefold():
                wrong.append(f"{section.title!r} names no note: add 'Evidence: knowledge_base/…', or write 'No evidence'")
            found += [Finding(check="outline", path=OUTLINE, line=section.line, message=message) for message in wrong]
        return found

    def section(self, section: plans.Section) -> list[Finding]:
        text = self._workspace.read(section.path)
        if text is None or not text.strip():
            return [Finding(check="section", path=section.path, line=0, message="the section is not written")]
        return self.text(section.path, text, strict=True)

    def text(self, path: str, text: str, *, strict: bool) -> list[Finding]:
        """Citations resolve and bear their sentences; with `strict` every factual sentence has one, or the next but one has."""
        if path == REPORT:
            text = plans.without_part(text, "Sources")
        return [
            Finding(check=check, path=path, line=one.line, message=message)
            for one, check, message in self._faults(text, strict=strict)
        ]

    def _faults(self, text: str, *, strict: bool) -> Iterator[tuple[Sentence, str, str]]:
        """What is wrong with a text: the sentence, the rule, and why."""
        said = sentences(text)
        for at, one in enumerate(said):
            unresolved = [message for cited in one.citations if (message := self.unresolved(cited))]
            for message in unresolved:
                yield one, "citation", message
            if len(unresolved) < len(one.citations):
                lost = self._unborne(one, one.citations)
                if lost:
                    yield one, "evidence", f"not in the cited lines: {', '.join(lost[:8])}"
            elif strict and not one.citations and self._needs_citation(one, said[at + 1 :]):
                yield one, "uncited", f"no citation: {one.text[:160]!r}"

    def _needs_citation(self, one: Sentence, following: Sequence[Sentence]) -> bool:
        """A factual sentence, unless a citation one or two sentences further in the same paragraph bears it, too."""
        if one.text == NO_EVIDENCE or not is_factual(one.text):
            return False
        near = next((other for other in following[:_COVERED_BEFORE] if other.block == one.block and other.citations), None)
        return near is None or bool(self._unborne(one, near.citations))

    def unresolved(self, cited: Citation) -> str:
        """Why a citation leads nowhere; empty when it leads to its lines."""
        source = self._archive.get(cited.path) if cited.path.startswith(f"{SOURCES}/") and ".." not in cited.path else None
        if source is None:
            return f"{cited.path} does not exist"
        if not source.first <= cited.first <= cited.last <= len(source.lines):
            there = f"lines {source.first} to {len(source.lines)}"
            return f"{cited.path} has its text in {there}, not {cited.first} to {cited.last}"
        if cited.last - cited.first >= SPAN_MAX_LINES:
            return f"more than {SPAN_MAX_LINES} lines of {cited.path} are cited: name the few that say it"
        if not "".join(source.lines[cited.first - 1 : cited.last]).strip():
            return f"the cited lines of {cited.path} are empty"
        if cited.span_hash and cited.span_hash != span_hash(source.lines, cited.first, cited.last):
            return f"the lines of {cited.path} are not the ones that were cited (hash {cited.span_hash})"
        return ""

    def _unborne(self, one: Sentence, citations: Sequence[Citation]) -> list[str]:
        spans: list[str] = []
        known = [self._topic]
        for cited in citations:
            source = self._archive.get(cited.path) if not self.unresolved(cited) else None
            if source is not None:
                spans.append("\n".join(source.lines[cited.first - 1 : cited.last]))
                is_web = source.url.startswith(("http://", "https://"))
                # The folders above a file say nothing of what it holds.
                known += [source.title, source.url if is_web else source.url.rpartition("/")[2]]
        return missing(one.text, spans, "\n".join(known)) if spans else ["(no lines)"]

    def without_unsupported(self, text: str) -> tuple[str, list[str]]:
        """The text without the sentences that the checks find fault with, and those sentences."""
        left_out: list[str] = []
        # What leaned on a sentence that went may be bare then; every pass removes one at least.
        while bad := {one.start: one for one, _check, _message in self._faults(text, strict=True)}:
            for start in sorted(bad, reverse=True):
                left_out.append(bad[start].text)
                text = text[:start] + text[bad[start].end :]
        return re.sub(r"^\s*(?:[-*+]|\d+[.)])\s*$\n?", "", text, flags=re.M), left_out

    def _assembled(self, report: str) -> Iterator[Finding]:
        for section in plans.sections(self._workspace.read(OUTLINE) or ""):
            body = (self._workspace.read(section.path) or "").strip()
            if body and body not in report:
                yield Finding(check="report", path=REPORT, line=0, message=f"does not hold {section.path} as it is")

    def unknown_files(self, written: Iterable[str]) -> Iterator[Finding]:
        own = {TOPIC, INDEX, OUTLINE, REPORT, REPORT_HTML, STATE, *written}
        for path in self._workspace.files():
            if path not in own and not path.startswith((f"{SOURCES}/", f"{CHECKS}/")):
                where = path.partition("/")[0] in (NOTES, SECTIONS)
                if where and written:
                    yield Finding(check="foreign", path=path, line=0, message="was not written by the agents")
                elif not where:
                    yield Finding(check="foreign", path=path, line=0, message="does not belong to a workspace")
