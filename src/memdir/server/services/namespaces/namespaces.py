"""Namespaces: containers under the name that `/ns` has for them."""

from __future__ import annotations

from typing import Final

from memdir.api import ns
from memdir.server.http.access import Caller
from memdir.server.services.admin import containers
from memdir.server.services.contents.views import pagination
from memdir.server.services.namespaces.documents import paged
from memdir.store.errors import InvalidError

CONTEXT_KEY: Final = "entityContext"
"""The setting that `/v3/container-tags` knows by this name."""


def page(caller: Caller, *, number: int, limit: int, text: str | None) -> ns.NamespaceList:
    """The namespaces that the key may read whole, newest first; with `text` those that have it in their name."""
    wanted = (text or "").casefold()
    found = [entry for entry in containers.listing(caller) if wanted in entry.container_tag.casefold()]
    found.sort(key=lambda entry: (entry.created_at, entry.container_tag), reverse=True)
    shown = [
        ns.Namespace(
            id=entry.id,
            namespace=entry.container_tag,
            document_count=entry.document_count,
            memory_count=entry.memory_count,
            description=None,
            system=ns.Stamps(created_at=entry.created_at, updated_at=entry.updated_at),
        )
        for entry in found[(number - 1) * limit : number * limit]
    ]
    return ns.NamespaceList(namespaces=shown, pagination=paged(pagination(number, limit, len(found))))


def get(caller: Caller, namespace: str) -> ns.NamespaceDetails:
    """A namespace. NotFoundError."""
    settings = containers.settings(caller, namespace)
    context = settings.get(CONTEXT_KEY)
    return ns.NamespaceDetails(
        namespace=namespace,
        supporting_context=context if isinstance(context, str) else None,
        system=ns.Stamps(created_at=settings["createdAt"], updated_at=settings["updatedAt"]),
    )


def change(caller: Caller, namespace: str, request: ns.ChangeNamespace) -> ns.NamespaceDetails:
    """Keep the context (models would read it; rules do not). NotFoundError for a namespace that does not exist."""
    caller.container(namespace, "write")
    if "supporting_context" in request.model_fields_set:
        containers.change_settings(caller, namespace, {CONTEXT_KEY: request.supporting_context})
    return get(caller, namespace)


def delete(caller: Caller, namespace: str, move_to: str | None) -> ns.NamespaceDeleted:
    """Delete a namespace with all that is in it, for good."""
    if move_to is not None:
        caller.allow("write", namespace)
        raise InvalidError(
            "the content of a namespace cannot be moved into another here",
            hint="GET /v1/export it and POST /v1/import it there, then delete it without moveTo",
        )
    container = caller.container(namespace, "write", frees=True)
    documents = caller.store.documents.counts([container.id]).get(container.id, 0)
    memories = caller.store.memories.counts([container.id]).get(container.id, 0)
    containers.delete(caller, namespace)
    return ns.NamespaceDeleted(namespace=namespace, deleted_documents_count=documents, deleted_memories_count=memories)


def organization(caller: Caller) -> ns.Organization:
    """How many namespaces there are; a background for all of them is not kept here."""
    return ns.Organization(organizational_context=None, namespace_count=len(caller.readable()))
