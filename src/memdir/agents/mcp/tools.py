"""The ten tools: what each takes (bounded), what it says about itself, and what it does.

The order of `TOOLS` is what a host sees and caches: new ones go to the end. Arguments are checked here and not by the
protocol's library, so that a model is told what to mend in a result that it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import SkipJsonSchema

from memdir.agents.mcp import answers, guide
from memdir.agents.mcp.link import MemoryLink
from memdir.agents.project import Project
from memdir.api import agents as wire
from memdir.client.light import LightCallError
from memdir.core.errors import MemdirError, UsageError
from memdir.core.ids import new_id
from memdir.core.limits import (
    MEMORY_MAX_CHARS,
    MEMORY_PROJECT_MAX_CHARS,
    MEMORY_TAG_MAX_CHARS,
    MEMORY_TAGS_MAX,
    QUERY_MAX_CHARS,
)  # fmt: skip

SEARCH_LIMIT_MAX: Final = 50
LIST_LIMIT_MAX: Final = 100
REVIEW_LIMIT_MAX: Final = 20
_NO_PROJECT: Final = frozenset({"", "-"})
_ID_MAX_CHARS: Final = 100
_CURSOR_MAX_CHARS: Final = 1_000
_RECENT_MAX: Final = 5
_PROBLEMS_MAX: Final = 5

Identifier = Annotated[str, Field(min_length=1, max_length=_ID_MAX_CHARS, description="id of a memory")]
_NAMED_PROJECT: Final = Field(max_length=MEMORY_PROJECT_MAX_CHARS, description="default: the current project; '' for none")


class Arguments(BaseModel):
    """What a tool is called with. Unknown names are refused: a misspelt one must not be taken for its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StoreArguments(Arguments):
    content: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MEMORY_MAX_CHARS,
            description="one self-contained fact; long texts are cut into pieces",
        ),
    ]
    tags: Annotated[
        list[wire.Tag], Field(max_length=MEMORY_TAGS_MAX, description="two to four words it belongs to, such as auth, bug-fix")
    ] = Field(default_factory=list)
    project: Annotated[str | SkipJsonSchema[None], _NAMED_PROJECT] = None
    personal: Annotated[
        bool, Field(description="true for what the user prefers or is in every project; it then belongs to no project")
    ] = False
    outside: Annotated[
        bool,
        Field(
            description="true when you know it from a web page, an issue, a mail or a file that others wrote; it is then given "
            "to no prompt before the user confirms it"
        ),
    ] = False
    supersedes: Annotated[
        list[Identifier], Field(max_length=20, description="ids of memories that are no longer true because of this one")
    ] = Field(default_factory=list)
    redact_secrets: Annotated[
        bool, Field(description="take passwords and keys out of the content instead of refusing to store it")
    ] = False


class SearchArguments(Arguments):
    query: Annotated[str, Field(min_length=1, max_length=QUERY_MAX_CHARS, description="key words, names, error messages")]
    tags: Annotated[list[wire.Tag], Field(max_length=MEMORY_TAGS_MAX, description="memories with these tags rank higher")] = (
        Field(default_factory=list)
    )
    project: Annotated[str | SkipJsonSchema[None], _NAMED_PROJECT] = None
    only_project: Annotated[bool, Field(description="leave out memories of other projects")] = False
    only_tags: Annotated[bool, Field(description="leave out memories that have none of the tags")] = False
    limit: Annotated[int, Field(ge=1, le=SEARCH_LIMIT_MAX)] = 5


class ListArguments(Arguments):
    project: Annotated[
        str | SkipJsonSchema[None],
        Field(max_length=MEMORY_PROJECT_MAX_CHARS, description="default: the current project and none; '' for those of none"),
    ] = None
    all_projects: Annotated[bool, Field(description="of every project")] = False
    tag: Annotated[str | SkipJsonSchema[None], Field(min_length=1, max_length=MEMORY_TAG_MAX_CHARS)] = None
    cursor: Annotated[
        str | SkipJsonSchema[None], Field(min_length=1, max_length=_CURSOR_MAX_CHARS, description="of the page before")
    ] = None
    limit: Annotated[int, Field(ge=1, le=LIST_LIMIT_MAX)] = 20


class GetArguments(Arguments):
    id: Identifier


class DeleteArguments(Arguments):
    id: Identifier


class UpdateArguments(Arguments):
    id: Identifier
    content: Annotated[str, Field(min_length=1, max_length=MEMORY_MAX_CHARS, description="all of what it says from now on")]
    tags: Annotated[
        Annotated[list[wire.Tag], Field(max_length=MEMORY_TAGS_MAX)] | SkipJsonSchema[None],
        Field(description="default: as they are"),
    ] = None
    redact_secrets: Annotated[bool, Field(description="take passwords and keys out of the content instead of refusing it")] = (
        False
    )


class ConfirmArguments(Arguments):
    id: Identifier


class ReviewArguments(Arguments):
    limit: Annotated[int, Field(ge=1, le=REVIEW_LIMIT_MAX)] = 5


class HabitsArguments(Arguments):
    query: Annotated[str, Field(max_length=QUERY_MAX_CHARS, description="what it is needed for, to choose examples")] = ""


class ProfileArguments(Arguments):
    project: Annotated[str | SkipJsonSchema[None], _NAMED_PROJECT] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What the tools work with. Calls block: they run in worker threads."""

    link: MemoryLink
    project: Project | None
    """Of the folder that the host started us in."""
    stored_by: str = "agent unknown"
    """Who calls, as the memory server is told."""
    more_tools: tuple[Tool, ...] = ()
    """Tools beside those of agents' memories."""

    def project_or(self, named: str | None, *, remember: bool = False) -> str | None:
        """The project that a call means: the one it names, none for '' (and '-', as commands have it), else the current one
        as the memory server calls it (with `remember`: from now on)."""
        if named is not None:
            return None if named in _NO_PROJECT else named
        return self.link.ask(lambda memories: memories.folder_of(self.project, remember=remember))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a tool gave: words for a model, and the same as a JSON object of the tool's output schema."""

    text: str
    data: BaseModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool as a host sees it. `reads_only`, `destroys`, `repeatable` become the protocol's annotations; none of the tools
    reaches beyond the user's own memory (`openWorldHint` is false)."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    answer: type[BaseModel]
    run: Callable[[Around, Any], Outcome]
    reads_only: bool
    destroys: bool = False
    repeatable: bool = True

    def __call__(self, around: Around, given: dict[str, Any]) -> Outcome:
        """Check the arguments and run. MemdirError with words for the model when either fails."""
        try:
            arguments = self.arguments.model_validate(given)
        except ValidationError as error:
            raise UsageError(
                f"{self.name} was called wrongly: {_problems(error)}", hint="correct the arguments and call it again"
            ) from None
        try:
            return self.run(around, arguments)
        except LightCallError as error:
            raise _explained(error) from error


def _explained(error: LightCallError) -> MemdirError:
    """A refusal of the memory server with what a model can do about it, which is not what a person would."""
    if error.status == 403 and "confirmed by a person" in error.message:
        return UsageError(error.message, hint="ask the user to look at it with `memdir memory review`")
    if error.status == 404:
        return UsageError("there is no memory with that id", hint="memory_search and memory_list give the ids there are")
    if error.status == 422 and "secret" in error.message:
        hint = "take it out of the content, or call memory_store again with redact_secrets true"
        return UsageError(error.message, hint=hint)
    return error


def _store(around: Around, given: StoreArguments) -> Outcome:
    key = new_id()
    project = None if given.personal else around.project_or(given.project, remember=True)
    stored = around.link.ask(
        lambda memories: memories.store(
            given.content,
            tags=given.tags,
            project=project,
            stored_by=around.stored_by,
            trusted=not given.outside,
            supersedes=given.supersedes,
            secrets="redact" if given.redact_secrets else "refuse",
            idempotency_key=key,
        )
    )
    result = wire.StoreResult.model_validate(stored)
    data = answers.Stored(
        memories=[answers.memory(one) for one in result.memories],
        duplicates=[answers.Duplicate(id=one.id, similarity=one.similarity) for one in result.duplicates],
        superseded=[answers.Superseded(id=one.id, content=one.content, why=one.why) for one in result.superseded],
        redacted=result.redacted,
    )
    return Outcome(text=answers.stored_text(data), data=data)


def _search(around: Around, given: SearchArguments) -> Outcome:
    project = around.project_or(given.project)
    if given.only_project and project is None:
        raise UsageError("only_project was asked for, and there is no current project", hint="name one with `project`")
    found = around.link.ask(
        lambda memories: memories.search(
            given.query,
            project=project,
            tags=given.tags,
            only_project=given.only_project,
            only_tags=given.only_tags,
            limit=given.limit,
        )
    )
    result = wire.AgentSearchResponse.model_validate(found)
    sure = len(result.results)
    kept, left_out = answers.fitting(answers.hit(one) for one in (*result.results, *result.closest))
    data = answers.Found(results=kept[:sure], closest=kept[sure:], terms=result.terms, left_out=left_out)
    return Outcome(text=answers.found_text(data, given.query), data=data)


def _list(around: Around, given: ListArguments) -> Outcome:
    project = None if given.all_projects else "" if given.project in _NO_PROJECT else around.project_or(given.project)
    page = memories_page(
        around.link, project=project, tag=given.tag, after=given.cursor, limit=given.limit, personal=given.project is None
    )
    data = answers.Listed(
        memories=[answers.memory(one, max_chars=answers.LISTED_MAX_CHARS) for one in page.memories],
        next_cursor=page.next_after,
        total=page.total,
    )
    return Outcome(text=answers.listed_text(data), data=data)


def _get(around: Around, given: GetArguments) -> Outcome:
    data = _whole(one_memory(around.link, given.id))
    return Outcome(text=answers.read_text(data), data=data)


def _whole(value: wire.AgentMemory) -> answers.Read:
    return answers.Read(memory=answers.memory(value, max_chars=answers.READ_MAX_CHARS))


def _delete(around: Around, given: DeleteArguments) -> Outcome:
    around.link.ask(lambda memories: memories.delete(given.id))
    return Outcome(text=f"Deleted memory {given.id}, its file too.", data=answers.Deleted(id=given.id, deleted=True))


def _update(around: Around, given: UpdateArguments) -> Outcome:
    secrets = "redact" if given.redact_secrets else "refuse"
    changed = around.link.ask(
        lambda memories: memories.edit(
            given.id, content=given.content, tags=given.tags, stored_by=around.stored_by, secrets=secrets
        )
    )
    data = _whole(wire.AgentMemory.model_validate(changed))
    return Outcome(text=f"Updated; the former text is in its file's history.\n\n{answers.read_text(data)}", data=data)


def _confirm(around: Around, given: ConfirmArguments) -> Outcome:
    kept = around.link.ask(lambda memories: memories.confirm(given.id, stored_by=around.stored_by))
    data = _whole(wire.AgentMemory.model_validate(kept))
    return Outcome(text=f"Confirmed.\n\n{answers.read_text(data)}", data=data)


def _review(around: Around, given: ReviewArguments) -> Outcome:
    project = around.project_or(None)
    asked, total = around.link.ask(lambda memories: memories.review(project=project, limit=given.limit))
    data = answers.Reviewed(questions=[answers.question(wire.ReviewQuestion.model_validate(one)) for one in asked], total=total)
    return Outcome(text=answers.review_text(data), data=data)


def _habits(around: Around, given: HabitsArguments) -> Outcome:
    """From the log of this machine; the memory's server is not asked."""
    from memdir.core.paths import app_paths
    from memdir.traces.consolidate import consolidate
    from memdir.traces.engram import engrams
    from memdir.traces.habits import markdown
    from memdir.traces.log import TraceLog

    del around
    memory = consolidate(engrams(TraceLog(app_paths().traces_dir).events()))
    text = markdown(memory, given.query)[: answers.HABITS_MAX_CHARS] if memory.engrams else ""
    data = answers.Habits(habits=text, sessions=len(memory.engrams))
    return Outcome(text=answers.habits_text(data), data=data)


def _profile(around: Around, given: ProfileArguments) -> Outcome:
    data = profile(around, around.project_or(given.project))
    return Outcome(text=answers.profile_text(data), data=data)


def profile(around: Around, project: str | None) -> answers.Profile:
    """What lasts, and the latest memories of `project` and of none."""
    found = around.link.ask(lambda memories: memories.profile(project=project, limit=_RECENT_MAX))
    known = wire.AgentProfile.model_validate(found)
    return answers.Profile(
        project=known.project,
        facts=[one[: answers.FACT_MAX_CHARS] for one in known.facts[: answers.FACTS_MAX]],
        recent_memories=[answers.memory(one) for one in known.memories],
        total=known.total,
    )


def memories_page(
    link: MemoryLink,
    *,
    project: str | None = None,
    tag: str | None = None,
    after: str | None = None,
    limit: int,
    personal: bool = False,
) -> wire.MemoriesPage:
    """A page of memories, newest first."""
    page = link.ask(lambda memories: memories.page(project=project, tag=tag, after=after, limit=limit, personal=personal))
    return wire.MemoriesPage.model_validate(page)


def one_memory(link: MemoryLink, memory_id: str) -> wire.AgentMemory:
    """The memory of an id."""
    return wire.AgentMemory.model_validate(link.ask(lambda memories: memories.get(memory_id)))


def _problems(error: ValidationError) -> str:
    """What is wrong with the arguments, without repeating what was sent: it may be long."""
    found = error.errors(include_url=False, include_input=False)
    said = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg'][:200]}" for one in found[:_PROBLEMS_MAX]]
    more = len(found) - len(said)
    return "; ".join(said) + (f"; and {more} more" if more else "")


def input_schema(tool: Tool) -> dict[str, Any]:
    """JSON Schema of the arguments, every reference resolved: hosts differ in what they understand of it."""
    return plain_schema(tool.arguments.model_json_schema())


def output_schema(tool: Tool) -> dict[str, Any]:
    """JSON Schema of `structuredContent`."""
    return plain_schema(tool.answer.model_json_schema(by_alias=True, mode="serialization"))


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` without `$ref`, without titles made from names, and without defaults of null, which strict hosts refuse."""
    definitions = schema.get("$defs", {})

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            own = {name: one for name, one in value.items() if name != "$ref"}
            return plain({**definitions[value["$ref"].rsplit("/", 1)[1]], **own})
        made = {}
        for name, one in value.items():
            if name == "properties":
                made[name] = {key: plain(inner) for key, inner in one.items()}
            elif name not in ("$defs", "title") and not (name == "default" and one is None):
                made[name] = plain(one)
        return made

    plained: dict[str, Any] = plain(schema)
    return plained


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="memory_store", title="Remember", description=guide.STORE, arguments=StoreArguments, answer=answers.Stored,
        run=_store, reads_only=False,
    ),
    Tool(
        name="memory_search", title="Search memory", description=guide.SEARCH, arguments=SearchArguments, answer=answers.Found,
        run=_search, reads_only=True,
    ),
    Tool(
        name="memory_list", title="List memories", description=guide.LIST, arguments=ListArguments, answer=answers.Listed,
        run=_list, reads_only=True,
    ),
    Tool(
        name="memory_get", title="Read a memory", description=guide.GET, arguments=GetArguments, answer=answers.Read,
        run=_get, reads_only=True,
    ),
    Tool(
        name="memory_delete", title="Forget", description=guide.DELETE, arguments=DeleteArguments, answer=answers.Deleted,
        run=_delete, reads_only=False, destroys=True,
    ),
    Tool(
        name="memory_profile", title="Memory profile", description=guide.PROFILE, arguments=ProfileArguments,
        answer=answers.Profile, run=_profile, reads_only=True,
    ),
    Tool(
        name="memory_update", title="Correct a memory", description=guide.UPDATE, arguments=UpdateArguments,
        answer=answers.Read, run=_update, reads_only=False, destroys=True,
    ),
    Tool(
        name="memory_confirm", title="Confirm a memory", description=guide.CONFIRM, arguments=ConfirmArguments,
        answer=answers.Read, run=_confirm, reads_only=False,
    ),
    Tool(
        name="memory_review", title="Review memories", description=guide.REVIEW, arguments=ReviewArguments,
        answer=answers.Reviewed, run=_review, reads_only=True,
    ),
    Tool(
        name="memory_habits", title="Ways of working", description=guide.HABITS, arguments=HabitsArguments,
        answer=answers.Habits, run=_habits, reads_only=True,
    ),
)  # fmt: skip


def trouble(error: MemdirError) -> str:
    """An error in words for a model: what is wrong, and what to do."""
    return f"{error.message}\n{error.hint}" if error.hint else error.message
