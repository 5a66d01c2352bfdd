"""`/v1/keys`, `/v1/users`, `/v1/orgs`, `/v1/audit`. Thin over `server.services.admin.accounts`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from memdir.api import admin as wire
from memdir.core.limits import INT64_MAX
from memdir.server.http.authentication import Authenticator
from memdir.server.routes.files import Calling, Dispatching, model_response
from memdir.server.services.admin import accounts as admin

router = APIRouter()
Org = Annotated[str | None, Query(max_length=100)]


async def authenticator_of(request: Request) -> Authenticator:
    """The server's authenticator, which has to forget what was changed here."""
    authenticator: Authenticator = request.app.state.guard_policy.authenticator
    return authenticator


Authenticating = Annotated[Authenticator, Depends(authenticator_of)]


def _secret(key: wire.NewKeyView) -> Response:
    """An answer that no cache may keep."""
    answer = model_response(key, status=201)
    answer.headers["cache-control"] = "no-store"
    return answer


@router.post("/v1/keys", response_model=wire.NewKeyView, status_code=201)
async def create_key(body: wire.KeyRequest, caller: Calling, dispatcher: Dispatching, org: Org = None) -> Response:
    """The answer holds the secret, in the field `key`; it cannot be had again."""
    return _secret(await dispatcher.run(admin.create_key, caller, org, body))


@router.get("/v1/keys", response_model=wire.KeyList)
async def list_keys(caller: Calling, dispatcher: Dispatching, org: Org = None) -> Response:
    return model_response(await dispatcher.run(admin.list_keys, caller, org))


@router.delete("/v1/keys/{key}", response_model=wire.Revoked)
async def revoke_key(key: str, caller: Calling, dispatcher: Dispatching, known: Authenticating, org: Org = None) -> Response:
    """By id or name."""
    revoked = await dispatcher.run(admin.revoke_key, caller, org, key)
    known.forget()
    return model_response(revoked)


@router.post("/v1/keys/{key}/rotate", response_model=wire.NewKeyView, status_code=201)
async def rotate_key(
    key: str, body: wire.RotateRequest, caller: Calling, dispatcher: Dispatching, known: Authenticating, org: Org = None
) -> Response:
    rotated = await dispatcher.run(admin.rotate_key, caller, org, key, body)
    known.forget()
    return _secret(rotated)


@router.post("/v1/users", response_model=wire.UserView, status_code=201)
async def add_user(body: wire.UserRequest, caller: Calling, dispatcher: Dispatching, org: Org = None) -> Response:
    return model_response(await dispatcher.run(admin.add_user, caller, org, body), status=201)


@router.get("/v1/users", response_model=wire.UserList)
async def list_users(caller: Calling, dispatcher: Dispatching, org: Org = None) -> Response:
    return model_response(await dispatcher.run(admin.list_users, caller, org))


@router.delete("/v1/users/{user}", response_model=wire.UserRemoved)
async def remove_user(user: str, caller: Calling, dispatcher: Dispatching, known: Authenticating, org: Org = None) -> Response:
    removed = await dispatcher.run(admin.remove_user, caller, org, user)
    known.forget()
    return model_response(removed)


@router.post("/v1/orgs", response_model=wire.OrgView, status_code=201)
async def add_org(body: wire.OrgRequest, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(admin.add_org, caller, body), status=201)


@router.get("/v1/orgs", response_model=wire.OrgList)
async def list_orgs(caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(admin.list_orgs, caller))


@router.delete("/v1/orgs/{owner}", response_model=wire.OrgRemoved)
async def remove_org(owner: str, caller: Calling, dispatcher: Dispatching, known: Authenticating) -> Response:
    removed = await dispatcher.run(admin.remove_org, caller, owner)
    known.forget()
    return model_response(removed)


@router.get("/v1/audit", response_model=wire.AuditPage)
async def audit(
    caller: Calling,
    dispatcher: Dispatching,
    org: Org = None,
    since: Annotated[int, Query(ge=0, le=INT64_MAX, description="milliseconds since the epoch")] = 0,
    before: Annotated[int | None, Query(ge=0, le=INT64_MAX)] = None,
    key: Annotated[str | None, Query(max_length=100)] = None,
    user: Annotated[str | None, Query(max_length=100)] = None,
    action: wire.Action | None = None,
    container: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=wire.AUDIT_PAGE_MAX)] = 100,
) -> Response:
    page = await dispatcher.run(
        admin.audit, caller, org, since_ms=since, before=before, key=key, user=user, action=action, container=container,
        limit=limit,
    )  # fmt: skip
    return model_response(page)
