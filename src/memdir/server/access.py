"""Who is calling, and which containers that opens."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from memdir.core.errors import NotFoundError
from memdir.server.errors import ForbiddenError
from memdir.store.containers import checked_tag
from memdir.store.keys import ApiKey
from memdir.store.store import Store
from memdir.store.types import Container, Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A key, at work."""

    key: ApiKey
    store: Store

    def allow(self, action: str, tag: str | None = None) -> None:
        """ForbiddenError unless the key may do `action` (on container `tag`)."""
        if not self.key.allows(action, tag):
            where = "" if tag is None else f" in container {tag!r}"
            raise ForbiddenError(f"this API key may not {action}{where}")

    def container(self, tag: str, action: str) -> Container:
        """An existing container, or NotFoundError."""
        self.allow(action, checked_tag(tag))
        return self.store.containers.get(self.key.org_id, tag)

    def found(self, tag: str, action: str) -> Container | None:
        """The container, None when it does not exist."""
        self.allow(action, checked_tag(tag))
        return self.store.containers.find(self.key.org_id, tag)

    def ensured(self, tag: str, action: str) -> Container:
        """The container, made when it does not exist."""
        self.allow(action, checked_tag(tag))
        return self.store.containers.ensure(self.key.org_id, tag)

    def document(self, name: str, action: str) -> tuple[Container, Document]:
        """A document by id or custom id. One that the key may not see is not found."""
        document = self.store.documents.by_any_id(self.key.org_id, name)
        if document is None or not self.key.allows("read", document.container_tag):
            raise NotFoundError(f"there is no document {name[:100]!r}")
        return self.container(document.container_tag, action), document


async def caller_of(request: Request) -> Caller:
    """The caller of a request, as the guard found it. A coroutine, because FastAPI sends plain functions to a thread."""
    return Caller(key=request.state.key, store=request.app.state.store)
