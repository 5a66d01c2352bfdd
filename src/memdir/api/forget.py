"""`/v1/forget`: everything that says something goes for good: from files, former contents, facts, passages and indexes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memdir.api.wire import Wire
from memdir.core.limits import PATH_MAX_BYTES

FORGET_LINES_MAX = 2000
"""One call takes away at most; for more, narrow it, or forget whole files."""
TEXT_MAX_CHARS = 200


class ForgetRequest(Wire):
    """POST /v1/forget: with `dry_run` nothing changes. Give one of `text` (words as they stand, case does not count), `subject`
    (a name: also what is said of it without the name) and `path` (a file or folder, whole)."""

    container_tag: str
    text: Annotated[str, Field(min_length=2, max_length=TEXT_MAX_CHARS)] | None = None
    subject: Annotated[str, Field(min_length=2, max_length=TEXT_MAX_CHARS)] | None = None
    path: Annotated[str, Field(min_length=2, max_length=PATH_MAX_BYTES)] | None = None
    whole_files: bool = False
    """Also delete files that hold it and have no lines to take it out of: PDFs, office files, archives."""
    dry_run: bool = True


class ForgetLine(Wire):
    """What is taken out of a file: a line, or sentences of it."""

    path: str
    line: int
    text: str


class ForgetFile(Wire):
    """A file that goes, or with `kept` would have to."""

    path: str
    kept: bool
    """True: it holds the words, and stays because `whole_files` was not asked for."""


class Receipt(Wire):
    """What was forgotten, without what it said: words are kept as hashes with a key, and so found again."""

    id: str
    container_tag: str
    at: str
    lines: int
    files: int
    former: int
    facts: int
    key: str
    windows: dict[int, list[str]]
    """Hashes of so many words in a row."""


class ForgetAnswer(Wire):
    lines: list[ForgetLine]
    files: list[ForgetFile]
    former: int
    """Former contents of files that go, with those of the same documents."""
    facts: list[str]
    """What is remembered, or was, and goes; also what is read in the lines."""
    receipt: Receipt | None
    """Null after a dry run, and where there is nothing."""


class VerifyRequest(Wire):
    """POST /v1/forget/verify: look for what a receipt is about. Moves the database's log into the database first."""

    container_tag: str
    key: Annotated[str, Field(pattern=r"^(?:[0-9a-f]{2}){16,64}$")]
    windows: Annotated[dict[Annotated[int, Field(ge=1, le=8)], list[str]], Field(max_length=8)]
    only_progress: bool = False
    """Tell how far the server is, and look nowhere: quick."""


class VerifyAnswer(Wire):
    found: list[str]
    """Where it still stands: `file PATH`, `former content of PATH`, `fact`, `passage of PATH`; at most 100."""
    waiting: int
    """Documents of the container that the server has still to read: ask again."""
    building: bool
    """Indexes are still made anew without it."""
    log_emptied: bool
    """False: a reader kept the database's log from being emptied; ask again. A PostgreSQL server does that by itself."""
