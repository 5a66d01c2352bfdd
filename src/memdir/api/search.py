"""`/v1/search`: ranked lines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic.alias_generators import to_camel

from memdir.api.wire import Wire
from memdir.core.limits import (
    CONTAINING_MAX,
    CONTAINING_MAX_CHARS,
    EXACT_LIMIT_MAX,
    INT64_MAX,
    QUERY_MAX_CHARS,
    SEARCH_LIMIT_MAX,
    SEARCH_PATHS_MAX,
)

SEARCH_CONTEXT_MAX = 100
SEARCH_BUDGET_MAX = 1_000_000


class SearchRequest(Wire):
    """POST /v1/search: ranked lines.

    `filepath` is the scope: a folder (with or without trailing slash), or one file; `/` is everything. With `waitMs` the
    server first waits (at most that long) until everything in scope up to `waitSeq` is searchable.
    """

    container_tag: str
    q: Annotated[str, Field(min_length=1, max_length=QUERY_MAX_CHARS)]
    filepath: str = "/"
    filepaths: Annotated[list[str], Field(min_length=1, max_length=SEARCH_PATHS_MAX)] | None = None
    """Several scopes; `filepath` says nothing then."""
    limit: Annotated[int, Field(ge=1, le=EXACT_LIMIT_MAX)] = 10
    """At most 200; with `literal` and `regex` 10,000."""
    mode: Literal["semantic", "literal", "regex"] = "semantic"
    """`literal`: lines that hold `q` byte for byte, as `grep -rnF`; `regex`: POSIX extended, as `grep -rnE`; in path order."""
    ignore_case: bool = False
    """With `literal` and `regex`, as all up to `maxCount`: what grep's -i, -w, -l, -v, -o, -c, -B, -A and -m mean. The lines of
    `q` are alternatives."""
    whole_words: bool = False
    files_only: bool = False
    """The first match of each file only."""
    invert: bool = False
    only_matching: bool = False
    count: bool = False
    """`counts` in the answer, of every file in scope, instead of lines."""
    before: Annotated[int, Field(ge=0, le=SEARCH_CONTEXT_MAX)] | None = None
    after: Annotated[int, Field(ge=0, le=SEARCH_CONTEXT_MAX)] | None = None
    max_count: Annotated[int, Field(ge=1, le=INT64_MAX)] | None = None
    texts: bool = True
    """With `literal` and `regex`: after the files, the texts beside PDF, office files and other files that are none. Such a hit
    names the file as `path` and the text as `sibling`; a count names the text."""
    wait_seq: int = 0
    wait_ms: Annotated[int, Field(ge=0, le=30_000)] = 0
    containing: Annotated[
        tuple[Annotated[str, Field(max_length=CONTAINING_MAX_CHARS, pattern=r"[^\W_]")], ...], Field(max_length=CONTAINING_MAX)
    ] = ()
    """Only sentences and lines that hold each of these texts (a name, a number, a phrase) as whole words, or stand under a
    heading that does, in any case; all there are, by how well they answer `q`."""
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """Hits with a lower score are left out; None: the server's own threshold."""
    nearest: Annotated[int, Field(ge=0, le=20)] = 0
    """Where no hit is sure enough, so many of the nearest, each marked as `weak`."""
    explain: bool = False
    rerank: bool = False
    """The best 50 hits in the order of the reranker that the server was given, with its scores."""
    group: bool = False
    """Hits of a file together, in the order of its lines; those that touch are one. Files by their best hit."""
    context: Annotated[int, Field(ge=0, le=SEARCH_CONTEXT_MAX)] = 0
    """Lines before and after each hit; hits of a file that then touch are one."""
    budget_tokens: Annotated[int, Field(ge=1, le=SEARCH_BUDGET_MAX)] | None = None
    """About how many tokens (a quarter of the characters) the hits may have together: the best one, then by score per token,
    with a second file before a second place in the first. `leftOut` says what did not fit."""

    @model_validator(mode="after")
    def _means_something(self) -> SearchRequest:
        if self.mode == "semantic":
            if self.limit > SEARCH_LIMIT_MAX:
                raise ValueError(f"limit must be at most {SEARCH_LIMIT_MAX} in a semantic search")
            exact = (
                "ignore_case",
                "whole_words",
                "files_only",
                "invert",
                "only_matching",
                "count",
                "before",
                "after",
                "max_count",
            )
            given = [name for name in exact if name in self.model_fields_set and getattr(self, name) not in (False, None)]
            if not self.texts:
                given.append("texts")
            if given:
                raise ValueError(f"{', '.join(map(to_camel, given))}: only with mode literal or regex")
        elif given := [name for name in ("containing", "threshold", "rerank") if getattr(self, name) not in (False, None, ())]:
            raise ValueError(f"{', '.join(given)}: only with mode semantic")
        return self

    @property
    def scopes(self) -> list[str]:
        """Where to search."""
        return [self.filepath] if self.filepaths is None else self.filepaths


class Reranking(Wire):
    """With `rerank`."""

    applied: bool
    reason: str | None = None
    """Why not: the order and the scores are those without it."""


class LineRange(Wire):
    """Counted from 1, both ends belong to it."""

    start_line: int
    end_line: int


class SearchHit(Wire):
    """Lines are counted from 1 and both ends belong to the hit; bytes are half open."""

    path: str
    document_id: str
    kind: Literal["chunk", "memory", "literal"]
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    text: str
    """The exact text of the best lines, at most 2,000 characters; of exact lines at most 2,000 bytes each."""
    score: float
    """0 to 1, higher is better."""
    title: str | None = None
    memory: str | None = None
    """The fact that was read in these lines, when it fits the query, too; of kind `memory`: when it alone does."""
    signals: dict[str, float] | None = None
    """With `explain`: lexical, static, dense, … as they entered the fusion."""
    why: str | None = None
    """How it was reached when the words of the query did not bring it up here: `linked from /notes/a.md`, `shares INC-4411`."""
    alike: int | None = None
    """How many other files say the same; they take no place of their own."""
    weak: bool | None = None
    """With `nearest`: nothing is sure enough, and this is among the nearest there is."""
    sibling: str | None = None
    """Of a file that is no text: the path of the text beside it, which the lines and bytes are of."""
    place: str | None = None
    """Where in such a file: `Page 12`, `Slide 3: Costs`, `Sheet: 2026`, or the time in a recording, `0:14:05`."""
    matched: list[LineRange] | None = None
    """With `group`, `context`, `before`, `after` or `budgetTokens`: the lines of the hits that are in it, in their order."""


class FileCount(Wire):
    """How many lines of a file match."""

    path: str
    count: int


class SearchLeftOut(Wire):
    """Hits that did not fit `budgetTokens`."""

    count: int
    paths: list[str]
    """Of their files, the best first, at most 100."""


class SearchResponse(Wire):
    results: list[SearchHit]
    total: int
    pending: list[str]
    """Paths in scope (at most 1,000) that were not searchable yet when the search ran."""
    half_read: int | None = None
    """With `waitSeq`: how many short files up to it could not be found by meaning when the search ran. Of more than 16, which
    are an import, only what was edited since, at most 17."""
    timing_ms: float
    stages_ms: dict[str, float] | None = None
    reranking: Reranking | None = None
    """With `rerank`."""
    tokens: int | None = None
    """With `budgetTokens`: about how many the results have, paths and line numbers included."""
    left_out: SearchLeftOut | None = None
    """With `budgetTokens`."""
    counts: list[FileCount] | None = None
    """With `count`, in path order, at most `limit`."""
    binary: list[str] | None = None
    """With `literal` and `regex`: binary files that match (at most 10,000); their lines are not shown."""
    note: str | None = None
    """With `literal` and `regex`: what was not searched, and why. Else, when nothing reaches the threshold, the best score."""
