"""One research from its topic to its report: rounds of the builder, the outline, the sections, the review.

Everything that happens is an entry of the journal; `Run.go` only decides what comes next by the state that the entries make."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from memdir.core.clock import Clock, SystemClock
from memdir.core.errors import UsageError
from memdir.llm.port import Model
from memdir.research import outline as plans
from memdir.research import prompts, steering
from memdir.research.agent import BudgetSpentError, PausedError, converse
from memdir.research.archive import Archive
from memdir.research.checks import NO_EVIDENCE, Checks, Finding
from memdir.research.citations import citations
from memdir.research.gather import Gatherer
from memdir.research.journal import Journal, entries
from memdir.research.state import Settings, State
from memdir.research.tools import FinishRound, FinishWriting, Permission, Toolbox
from memdir.research.web.place import Place
from memdir.research.workspace import CHECKS, INDEX, NOTES, OUTLINE, REPORT, SECTIONS, STATE, TOPIC, Workspace

TOPIC_MAX_CHARS: Final = 8000
_READING: Final = ("list_files", "read", "search", "grep")
_BUILDER_SHARE: Final = 0.7
"""Of every budget: a knowledge base that leaves nothing to write the report with is no use."""
_CARRIED: Final = ("summary", "next_round", "why")
"""Of a round's outcome, to the next one."""
_SHOWN_MAX_CHARS: Final = 12_000
"""Of the index or a tree in a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a run works with. `digester` is a cheaper model that reads pages; None leaves that to words."""

    model: Model
    places: Sequence[Place]
    digester: Model | None = None


class Run:
    """Use as a context manager: it holds the workspace's journal."""

    def __init__(
        self,
        workspace: Workspace,
        means: Means,
        *,
        clock: Clock | None = None,
        watch: Callable[[State], None] = lambda _state: None,
    ) -> None:
        """`watch` is told the state after every entry."""
        self.workspace = workspace
        self._means = means
        self._clock = clock or SystemClock()
        self._watch = watch
        self._archive = Archive(workspace)
        self._journal = Journal(workspace.root)
        self.state = State()

    def __enter__(self) -> Run:
        self.workspace.make()
        self._journal.__enter__()
        try:
            for entry in entries(self.workspace.root):
                self.state.apply(entry)
        except BaseException:
            self._journal.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.__exit__()

    def start(self, topic: str, settings: Settings, options: Mapping[str, Any] | None = None) -> None:
        """Begin in an empty workspace; `options` are kept for whoever resumes. UsageError when it holds a research already, or
        the topic says nothing."""
        if self.state.topic:
            raise UsageError(
                f"{self.workspace.root} holds a research already", hint="go on with --resume, or choose another --workspace"
            )
        topic = topic.strip()
        if not topic or len(topic) > TOPIC_MAX_CHARS:
            raise UsageError(f"a topic has 1 to {TOPIC_MAX_CHARS:,} characters")
        files = {TOPIC: f"# Topic\n\n{topic}\n"}
        self._record({"kind": "start", "topic": topic, "files": files, **self._named(settings, options)})

    def resume(self, settings: Settings, options: Mapping[str, Any] | None = None) -> None:
        """Go on, perhaps with other budgets. UsageError when nothing was begun here."""
        if not self.state.topic:
            raise UsageError(
                f"there is no research in {self.workspace.root}", hint="memdir research TOPIC --workspace DIR begins one"
            )
        self._restore()
        steering.clear_pause(self.workspace.root)
        if not self.state.outcome or self.state.outcome == "no evidence":
            self._record({"kind": "resume", **self._named(settings, options)})

    def _named(self, settings: Settings, options: Mapping[str, Any] | None) -> dict[str, Any]:
        places = [place.name for place in self._means.places]
        named = {"settings": settings.as_json(), "model": self._means.model.name, "places": places}
        return named | {"options": dict(self.state.options if options is None else options)}

    def _restore(self) -> None:
        """What the last entry wrote may not have reached the disk; nor may older files after a power cut."""
        for path, text in self.state.last_written.items():
            self._put(path, text)
        for path, written in self.state.written.items():
            if self.workspace.read(path) is None:
                self.workspace.write(path, written)

    def _put(self, path: str, text: str | None) -> None:
        if text is None:
            self.workspace.delete(path)
        else:
            self.workspace.write(path, text)

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000

    def _record(self, entry: dict[str, Any]) -> None:
        entry = {"n": self.state.entries, "t": self._now_ms(), **entry}
        self._journal.append(entry)
        self.state.apply(entry)
        for path, text in (entry.get("files") or {}).items():
            self._put(path, text)
        self._watch(self.state)

    # --- what comes next

    def go(self) -> State:
        """Work until the report stands. BudgetSpentError and PausedError leave everything for `resume`; ModelError too."""
        if self.state.outcome:
            return self.state
        self._build()
        if not self._has_evidence():
            self._end("no evidence")
            return self.state
        self._stage("outline", self._outline_stage)
        failed = self.state.checklists["outline"]["status"] == "failed"
        sections = plans.sections(self.workspace.read(OUTLINE) or "")
        if failed and not sections:
            self._end("no report")
            return self.state
        for section in sections:
            self._section(section)
        self._stage("review", self._review_stage)
        self._assemble(sections)
        return self.state

    def _build(self) -> None:
        for number in range(1, self.state.settings.rounds + 1):
            name = f"round-{number}"
            self._stage(name, partial(self._round_stage, number))
            said = self.state.checklists[name]
            if said["status"] == "spent" or (said.get("complete") and said["status"] == "complete"):
                return

    def _has_evidence(self) -> bool:
        checks = self._checks()
        return any(
            not checks.unresolved(cited)
            for path in self.workspace.notes()
            for _line, cited in citations(self.workspace.read(path) or "")
        )

    def _stage(self, name: str, begun: Callable[[], tuple[str, str, Permission]]) -> None:
        """Begin or go on with a stage, and write down how it ended."""
        if name in self.state.checklists:
            return
        system, prompt, permission = begun()
        is_round = name.startswith("round-")
        guard = partial(self._guard, _BUILDER_SHARE if is_round else 1.0)
        if name not in self.state.stages:
            guard()
            said = steering.notes(self.workspace.root)[len(self.state.steering) :]
            if said:
                prompt += "\n\nNew notes of the user:\n" + "\n".join(f"- {one}" for one in said)
            self._record({"kind": "stage", "name": name, "system": system, "prompt": prompt, "steering": said})
        stage = self.state.stages[name]
        toolbox = Toolbox(self.workspace, self._archive, self._checks(), self._gatherer(), permission)
        try:
            outcome = converse(stage, self.state, toolbox, self._means.model, record=self._record, guard=guard)
        except BudgetSpentError:
            if not is_round or not self._has_evidence():
                raise
            outcome = {
                "status": "spent",
                "why": "the builder's part of the budget is used; the report is written from what there is",
            }
        files = self._after(name, outcome)
        self._record({"kind": "stage_end", "name": name, "outcome": dict(outcome), "files": files})

    def _after(self, name: str, outcome: Mapping[str, Any]) -> dict[str, str]:
        files = {f"{CHECKS}/{name}.json": json.dumps({"stage": name, **outcome}, indent=1, ensure_ascii=False) + "\n"}
        if name.startswith("round-"):
            files[INDEX] = self._logged(name, outcome)
        return files

    def _logged(self, name: str, outcome: Mapping[str, Any]) -> str:
        """The index with what the round said of itself, against the checklist."""
        index = self.workspace.read(INDEX) or f"# Index\n\n## {plans.TODO}\n"
        log = "\n".join(line for _number, line in plans.part(index, plans.ROUND_LOG)).strip()
        checks = self._checks()
        kinds = {one.check for one in checks.knowledge_base()}
        marks = {
            "Tasks complete": not checks.todos(),
            "Hierarchy match": "hierarchy" not in kinds,
            "No placeholders": "placeholder" not in kinds,
            "Full traceability": not kinds & {"traceability", "citation", "evidence"},
        }
        lines = [
            f"### {name.replace('-', ' ').capitalize()} ({outcome['status']})",
            "",
            str(outcome.get("summary") or outcome.get("why") or ""),
        ]
        lines += ["", *(f"- {mark}: {'yes' if holds else 'no'}" for mark, holds in marks.items())]
        for key in ("exhaustive_coverage", "information_density"):
            if outcome.get(key):
                lines.append(f"- {key.replace('_', ' ').capitalize()}: {outcome[key]}")
        lines += [f"- Next: {one}" for one in outcome.get("next_round", [])]
        bare = plans.without_part(index, plans.ROUND_LOG).rstrip()
        entry = "\n".join(lines)
        return f"{bare}\n\n## {plans.ROUND_LOG}\n\n{log + chr(10) * 2 if log else ''}{entry}\n"

    def _checks(self) -> Checks:
        return Checks(self.workspace, self._archive)

    def _gatherer(self) -> Gatherer:
        return Gatherer(
            state=self.state,
            archive=self._archive,
            places=self._means.places,
            record=self._record,
            now_ms=self._now_ms,
            digester=self._means.digester,
        )

    def _guard(self, share: float = 1.0) -> None:
        """Whether the run may ask the model once more, within a share of its budgets."""
        settings, state = self.state.settings, self.state
        if steering.is_pause_asked(self.workspace.root):
            raise PausedError("paused", hint=f"memdir research --resume --workspace {self.workspace.root} goes on")
        spent = (
            (settings.budget_tokens, state.usage.tokens, f"{settings.budget_tokens:,} tokens", "--budget-tokens"),
            (settings.budget_usd, state.usage.usd or 0.0, f"{settings.budget_usd} USD", "--budget-usd"),
            (settings.budget_minutes, state.worked_ms / 60_000, f"{settings.budget_minutes} minutes", "--budget-minutes"),
        )
        for budget, used, told, option in spent:
            if budget and used >= budget * share:
                raise BudgetSpentError(f"the budget of {told} is spent", hint=f"--resume with a larger {option} goes on")
        if settings.budget_usd and state.unpriced:
            raise UsageError(f"the price of {state.model} is not known", hint="use --budget-tokens instead of --budget-usd")

    # --- the stages

    def _round_stage(self, number: int) -> tuple[str, str, Permission]:
        checks, state = self._checks(), self.state
        last = state.checklists.get(f"round-{number - 1}")
        prompt = prompts.round_prompt(
            topic=state.topic,
            number=number,
            rounds=state.settings.rounds,
            budget=self._left(),
            index=_cut(self.workspace.read(INDEX) or ""),
            tree=self._tree(NOTES, "sources"),
            findings=_listed(checks.knowledge_base() + checks.sources()) if number > 1 else "",
            notes="\n".join(f"- {one}" for one in state.steering),
            last=json.dumps({key: last[key] for key in _CARRIED if key in last}, ensure_ascii=False) if last else "",
            places=", ".join(state.places),
        )

        def findings(said: dict[str, Any]) -> list[Finding]:
            checks = self._checks()
            found = checks.knowledge_base()
            if (self.state.fetched or said.get("complete")) and not self.workspace.notes():
                message = f"there is no note: write {NOTES}/AREA/NAME.md from the pages, with citations"
                found.append(Finding(check="traceability", path=INDEX, line=0, message=message))
            return found + checks.todos() + checks.sources() if said.get("complete") else found

        permission = Permission(
            tools=(*_READING, "write", "edit", "move", "delete", "web_search", "fetch"),
            may_write=lambda path: path == INDEX or (path.startswith(f"{NOTES}/") and path.endswith(".md")),
            where=f"{INDEX} and {NOTES}/…/NAME.md",
            findings=findings,
            finish=FinishRound,
        )
        return prompts.BUILDER, prompt, permission

    def _outline_stage(self) -> tuple[str, str, Permission]:
        prompt = prompts.outline_prompt(
            topic=self.state.topic,
            index=_cut(self.workspace.read(INDEX) or ""),
            tree=self._tree(NOTES),
            notes=self._user_notes(),
        )
        return prompts.OUTLINER, prompt, self._writing((OUTLINE,), lambda _said: self._checks().outline())

    def _section(self, section: plans.Section) -> None:
        name = f"section-{section.number:02d}"
        if name in self.state.checklists:
            return
        if not section.notes:
            # Never write from nothing: no model is asked.
            files = {section.path: f"{NO_EVIDENCE}\n"}
            outcome = {"status": "flagged", "why": "no evidence"}
            self._record({"kind": "stage", "name": name, "system": "", "prompt": "", "steering": []})
            self._record(
                {"kind": "stage_end", "name": name, "outcome": outcome, "files": {**files, **self._after(name, outcome)}}
            )
            return
        self._stage(name, lambda: self._section_stage(section))
        if self.workspace.read(section.path) is None:
            self._record({"kind": "write", "files": {section.path: f"{NO_EVIDENCE}\n"}})

    def _section_stage(self, section: plans.Section) -> tuple[str, str, Permission]:
        done = ", ".join(path for path in self.workspace.files(SECTIONS) if path != section.path)
        prompt = prompts.section_prompt(
            topic=self.state.topic,
            outline=_cut(self.workspace.read(OUTLINE) or ""),
            title=section.title,
            brief=section.brief,
            path=section.path,
            done=done,
            notes=self._user_notes(),
        )
        return prompts.SECTION, prompt, self._writing((section.path,), lambda _said: self._checks().section(section))

    def _review_stage(self) -> tuple[str, str, Permission]:
        sections = plans.sections(self.workspace.read(OUTLINE) or "")
        found = [one for section in sections for one in self._checks().section(section)]
        prompt = prompts.review_prompt(
            topic=self.state.topic,
            outline=_cut(self.workspace.read(OUTLINE) or ""),
            tree=self._tree(SECTIONS),
            findings=_listed(found),
            notes=self._user_notes(),
        )
        paths = tuple(section.path for section in sections)
        return (
            prompts.REVIEWER,
            prompt,
            self._writing(paths, lambda _said: [one for section in sections for one in self._checks().section(section)]),
        )

    def _writing(self, paths: tuple[str, ...], findings: Callable[[dict[str, Any]], list[Finding]]) -> Permission:
        return Permission(
            tools=(*_READING, "write", "edit"),
            may_write=lambda path: path in paths,
            where=", ".join(paths),
            findings=findings,
            finish=FinishWriting,
        )

    # --- the end

    def _assemble(self, sections: Sequence[plans.Section]) -> None:
        """The report from its sections. What the checks still find fault with is left out, and said."""
        checks, files, left_out = self._checks(), dict[str, str](), dict[str, list[str]]()
        bodies = []
        for section in sections:
            body, lost = checks.without_unsupported(self.workspace.read(section.path) or "")
            if lost:
                body = body if body.strip() else f"{NO_EVIDENCE}\n"
                files[section.path] = body
                left_out[section.path] = lost
            bodies.append(f"## {section.title}\n\n{body.strip() or NO_EVIDENCE}\n")
        title = plans.title(self.workspace.read(OUTLINE) or "") or self.state.topic.split("\n")[0][:120]
        cited = dict.fromkeys(one.path for body in bodies for _line, one in citations(body))
        listed = [
            f"- {source.title or source.path}: {source.url} ({path})"
            for path in cited
            if (source := self._archive.get(path)) is not None
        ]
        report = f"# {title}\n\n" + "\n".join(bodies) + ("\n## Sources\n\n" + "\n".join(listed) + "\n" if listed else "")
        files[REPORT] = report
        files[f"{CHECKS}/left-out.json"] = json.dumps(left_out, indent=1, ensure_ascii=False) + "\n"
        empty = all(NO_EVIDENCE in body for body in bodies)
        flagged = left_out or any(said["status"] != "complete" for said in self.state.checklists.values())
        self._end("no report" if empty else "flagged" if flagged else "complete", files)

    def _end(self, outcome: str, files: Mapping[str, str] | None = None) -> None:
        self._record({"kind": "end", "outcome": outcome, "files": dict(files or {})})
        self.workspace.write(STATE, json.dumps(summary(self.state), indent=1, ensure_ascii=False) + "\n")

    def _left(self) -> str:
        settings, usage = self.state.settings, self.state.usage
        told = []
        if settings.budget_tokens:
            left = max(settings.budget_tokens - usage.tokens, 0)
            told.append(f"{left:,} of {settings.budget_tokens:,} tokens are left for everything.")
        if settings.budget_minutes:
            told.append(f"{max(settings.budget_minutes - self.state.worked_ms / 60_000, 0):.0f} minutes are left.")
        return " ".join(told)

    def _tree(self, *folders: str) -> str:
        lines = [
            f"{path} ({len(self.workspace.lines(path))} lines)" for folder in folders for path in self.workspace.files(folder)
        ]
        return _cut("\n".join(lines))

    def _user_notes(self) -> str:
        return "\n".join(f"- {one}" for one in self.state.steering)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX_CHARS else text[:_SHOWN_MAX_CHARS] + "\n(cut: read the file)"


def _listed(found: Sequence[Finding]) -> str:
    return "\n".join(map(str, found[:40])) + (f"\nand {len(found) - 40} more" if len(found) > 40 else "")


def summary(state: State) -> dict[str, Any]:
    """Where a research stands, for `state.json`, `status` and programs."""
    rounds = [name for name in state.checklists if name.startswith("round-")]
    return {
        "topic": state.topic,
        "outcome": state.outcome,
        "stage": state.stage.name if state.stage else "",
        "rounds": len(rounds),
        "rounds_max": state.settings.rounds,
        "sources": len(set(state.fetched.values())),
        "failed_fetches": len(state.failed),
        "searches": state.searches,
        "model": state.model,
        "places": state.places,
        "replies": state.replies,
        "input_tokens": state.usage.input_tokens,
        "output_tokens": state.usage.output_tokens,
        "cached_tokens": state.usage.cached_tokens,
        "usd": None if state.unpriced else round(state.usage.usd or 0.0, 4),
        "minutes": round(state.worked_ms / 60_000, 1),
        "stages": {name: str(said.get("status", "")) for name, said in state.checklists.items()},
        "settings": state.settings.as_json(),
        "updated": datetime.fromtimestamp(state.updated_ms / 1000, UTC).isoformat(timespec="seconds"),
    }
