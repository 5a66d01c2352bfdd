"""Who is calling, and what that opens: the one place where the scope of a key is enforced.

A key has three bounds: actions (`read`, `write`; `admin` manages keys, people and the audit log), containers, and a folder with
all below it. Whoever asks for a container says which path the call is about (`at`); a call that says none is about the whole
container, and refused to a key that is bound to a folder. So a new route is closed until it says what it touches.

What a caller names and may not have is refused (403). What it did not name is left out: a list without a path is narrowed to
the key's folder, and a document outside of it is not found by its id (404).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fastapi import Request

from memdir.core.errors import NotFoundError
from memdir.server.errors import ForbiddenError
from memdir.server.http.rate_limits import Quotas
from memdir.store.accounts.keys import ACTIONS, ApiKey
from memdir.store.accounts.orgs import ORG_LOCAL
from memdir.store.errors import ConflictError, InvalidError
from memdir.store.paths import checked_path, is_within
from memdir.store.store import Store
from memdir.store.tree.containers import checked_tag
from memdir.store.types import Container, Document

_NOTED_MAX: Final = 20


@dataclass(slots=True, kw_only=True)
class Noted:
    """What one request turned out to be about, for the audit log. Bounded: of many names the first stay."""

    action: str | None = None
    containers: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    incoming_bytes: int = 0
    """Of the body, as announced."""
    route: str | None = None
    """As it is written down, such as `/v1/files/{path}`; never the path itself, which may hold anything."""
    success: int = 200
    """The status of the route when all goes well."""

    def note(self, action: str | None, tag: str | None = None, target: str | None = None) -> None:
        """The strongest action counts."""
        if action is not None and (self.action is None or ACTIONS.index(action) > ACTIONS.index(self.action)):
            self.action = action
        for value, known in ((tag, self.containers), (target, self.targets)):
            if value is not None and value not in known and len(known) < _NOTED_MAX:
                known.append(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A key, at work."""

    key: ApiKey
    store: Store
    noted: Noted = field(default_factory=Noted)
    quotas: Quotas | None = None

    @property
    def org_id(self) -> str:
        """The organisation whose containers exist for this caller."""
        return self.key.org_id

    def allow(self, action: str, tag: str | None = None, *, at: str | None = None, frees: bool = False) -> None:
        """ForbiddenError unless the key may do `action` (on container `tag`, at and below the path `at`; None: the whole
        container). QuotaError for a write when the quota is used up, unless it `frees` room."""
        self.noted.note(action, tag, at)
        if not self.key.allows(action, tag):
            where = "" if tag is None else f" in container {tag!r}"
            raise ForbiddenError(f"this API key may not {action}{where}")
        if tag is not None and not self.key.covers("/" if at is None else at):
            raise self._outside()
        if action == "write" and not frees:
            self.check_room(self.noted.incoming_bytes)

    def check_room(self, incoming_bytes: int) -> None:
        """QuotaError when what a write brings does not fit."""
        if self.quotas is not None:
            self.quotas.check(self.key, incoming_bytes)

    def allow_path(self, path: str) -> str:
        """`path` in its checked form; ForbiddenError when it stands outside the key's folder."""
        path = checked_path(path, root=True)
        self.noted.note(None, target=path)
        if not self.key.covers(path):
            raise self._outside()
        return path

    def narrowed(self, folder: str) -> str:
        """What the key opens of `folder` and all below it: that folder, or the key's own when it stands below. ForbiddenError
        when the two have nothing in common. The result is fit for `at`."""
        folder = checked_path(folder, root=True)
        if self.key.covers(folder):
            return folder
        if is_within(self.key.prefix, folder):
            return self.key.prefix
        raise self._outside()

    def container(self, tag: str, action: str, *, at: str | None = None, frees: bool = False) -> Container:
        """An existing container, or NotFoundError."""
        self.allow(action, checked_tag(tag), at=at, frees=frees)
        return self.store.containers.get(self.org_id, tag)

    def found(self, tag: str, action: str, *, at: str | None = None, frees: bool = False) -> Container | None:
        """The container, None when it does not exist."""
        self.allow(action, checked_tag(tag), at=at, frees=frees)
        return self.store.containers.find(self.org_id, tag)

    def ensured(self, tag: str, action: str, *, at: str | None = None, frees: bool = False) -> Container:
        """The container, made when it does not exist and the key may write."""
        self.allow(action, checked_tag(tag), at=at, frees=frees)
        if not self.key.allows("write", tag):
            return self.store.containers.get(self.org_id, tag)
        return self.store.containers.ensure(self.org_id, tag)

    def readable(self) -> list[Container]:
        """All containers of the organisation that the key may read, whole or in part."""
        self.allow("read")
        return [c for c in self.store.containers.all(self.org_id) if self.key.allows("read", c.tag)]

    def document(self, name: str, action: str, *, tag: str | None = None, frees: bool = False) -> tuple[Container, Document]:
        """A document by id or custom id (in container `tag`). One that the key may not see is not found. ConflictError when
        several containers have a document with this custom id: none of them is taken by chance."""
        self.noted.note(action, target=name)
        found = [
            document
            for document in self.store.documents.by_any_id(self.org_id, name)
            if self.sees(document) and tag in (None, document.container_tag)
        ]
        if not found:
            raise NotFoundError(f"there is no document {name[:100]!r}")
        if len(found) > 1:
            raise ConflictError(
                f"{len(found)} containers have a document {name[:100]!r}", hint="name it by its id, or say which containerTag"
            )
        (document,) = found
        self.allow(action, document.container_tag, at=document.path or "/", frees=frees)
        return self.store.containers.get(self.org_id, document.container_tag), document

    def sees(self, document: Document) -> bool:
        """Whether the document is in the scope of the key."""
        return self.key.allows("read", document.container_tag) and self.key.covers(document.path)

    def place(self, filepath: str | None, existing: Document | None = None) -> str | None:
        """The checked path where a document is to be written, None for one without a place, which a key bound to a folder may
        not write. `existing` is what the write would replace."""
        if existing is not None and not self.key.covers(existing.path):
            raise self._outside()
        if filepath is not None:
            return self.allow_path(filepath)
        if existing is None and not self.key.covers(None):
            raise InvalidError(f"this API key writes below {self.key.prefix} only", hint="send a filepath there")
        return None

    def administer(self, org_id: str | None = None) -> str:
        """The id of the organisation to manage (None: the caller's own), or ForbiddenError."""
        self.allow("admin")
        if not self.key.is_whole:
            raise ForbiddenError("this API key is bound to some containers or a folder and manages nothing")
        wanted = org_id or self.org_id
        if wanted != self.org_id and self.org_id != ORG_LOCAL:
            raise ForbiddenError("this API key manages its own organisation only")
        return wanted

    def _outside(self) -> ForbiddenError:
        return ForbiddenError(f"this API key opens {self.key.prefix} and what is below it only")


async def caller_of(request: Request) -> Caller:
    """The caller of a request, as the guard found it. A coroutine, because FastAPI sends plain functions to a thread."""
    state = request.state
    route = request.scope.get("route")
    state.noted.route = getattr(route, "path", None)
    state.noted.success = getattr(route, "status_code", None) or 200
    return Caller(key=state.key, store=request.app.state.store, noted=state.noted, quotas=state.quotas)
