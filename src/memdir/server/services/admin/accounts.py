"""Keys, people, organisations, the audit log. Over HTTP, and by `memdir server key` while no server runs."""

from __future__ import annotations

from memdir.api import admin
from memdir.core.clock import iso_ms
from memdir.core.errors import NotFoundError
from memdir.server.errors import ForbiddenError
from memdir.server.http.access import Caller
from memdir.store.accounts.audit import AuditQuery
from memdir.store.accounts.keys import ApiKey
from memdir.store.accounts.orgs import ORG_LOCAL, Organisation, User


def _org(caller: Caller, name: str | None) -> Organisation:
    """The organisation to manage. One that the caller may not manage is not told from one that does not exist."""
    found = caller.store.orgs.find(name or caller.org_id)
    org_id = caller.administer(name if found is None else found.id)
    if found is None:
        raise NotFoundError(f"there is no organisation {org_id[:100]!r}")
    return found


def _iso(at_ms: int | None) -> str | None:
    return None if at_ms is None else iso_ms(at_ms)


def _key_view(key: ApiKey, org: Organisation, users: dict[str, str], now_ms: int) -> admin.KeyView:
    state: admin.KeyState = "revoked" if key.revoked_at_ms is not None else "expired" if key.expired(now_ms) else "active"
    return admin.KeyView(
        id=key.id,
        name=key.name,
        org=org.name,
        user=None if key.user_id is None else users.get(key.user_id),
        containers=list(key.containers),
        actions=list(key.actions),
        prefix=key.prefix,
        limits=dict(key.limits),
        state=state,
        created_at=iso_ms(key.created_at_ms),
        expires_at=_iso(key.expires_at_ms),
        last_used_at=_iso(key.last_used_at_ms),
        revoked_at=_iso(key.revoked_at_ms),
        rotated_from=key.rotated_from,
    )


def _names(caller: Caller, org: Organisation) -> dict[str, str]:
    return {user.id: user.name for user in caller.store.orgs.users(org.id)}


def _with_secret(caller: Caller, org: Organisation, made: tuple[ApiKey, str]) -> admin.NewKeyView:
    view = _key_view(made[0], org, _names(caller, org), caller.store.now_ms())
    return admin.NewKeyView(**dict(view), key=made[1])


def create_key(caller: Caller, org: str | None, request: admin.KeyRequest) -> admin.NewKeyView:
    """A new key; its secret is in the answer and nowhere else."""
    owner = _org(caller, org)
    caller.noted.note("admin", target=request.name)
    user = None if request.user is None else _user(caller, owner, request.user)
    expires_at_ms = None if request.expires_in_s is None else caller.store.now_ms() + request.expires_in_s * 1000
    made = caller.store.keys.create(
        org_id=owner.id,
        name=request.name,
        containers=request.containers,
        actions=request.actions,
        prefix=request.prefix,
        user_id=None if user is None else user.id,
        expires_at_ms=expires_at_ms,
        limits=request.limits,
        unique=True,
    )
    return _with_secret(caller, owner, made)


def list_keys(caller: Caller, org: str | None) -> admin.KeyList:
    """Living and ended keys, oldest first."""
    owner = _org(caller, org)
    names, now_ms = _names(caller, owner), caller.store.now_ms()
    return admin.KeyList(keys=[_key_view(key, owner, names, now_ms) for key in caller.store.keys.all(owner.id)])


def _key(caller: Caller, org: Organisation, name: str) -> ApiKey:
    caller.noted.note("admin", target=name)
    key = caller.store.keys.find(org.id, name)
    if key is None:
        raise NotFoundError(f"there is no key {name[:100]!r}", hint="`memdir server key list` shows them")
    return key


def revoke_key(caller: Caller, org: str | None, name: str) -> admin.Revoked:
    """End a key, by id or name. NotFoundError when there is none that still works."""
    key = _key(caller, _org(caller, org), name)
    if not caller.store.keys.revoke(key.id):
        raise NotFoundError(f"the key {key.name!r} was revoked already")
    return admin.Revoked(id=key.id, name=key.name)


def rotate_key(caller: Caller, org: str | None, name: str, request: admin.RotateRequest) -> admin.NewKeyView:
    """A new secret in the place of an old one."""
    owner = _org(caller, org)
    key = _key(caller, owner, name)
    return _with_secret(caller, owner, caller.store.keys.rotate(key.id, keep_ms=request.keep_s * 1000))


def _user(caller: Caller, org: Organisation, name: str) -> User:
    user = caller.store.orgs.user(org.id, name)
    if user is None:
        raise NotFoundError(f"there is no user {name[:100]!r}", hint="`memdir server user list` shows them")
    return user


def _user_view(user: User, org: Organisation) -> admin.UserView:
    return admin.UserView(id=user.id, name=user.name, email=user.email, org=org.name, created_at=iso_ms(user.created_at_ms))


def add_user(caller: Caller, org: str | None, request: admin.UserRequest) -> admin.UserView:
    """A person of an organisation."""
    owner = _org(caller, org)
    caller.noted.note("admin", target=request.name)
    return _user_view(caller.store.orgs.add_user(owner.id, request.name, email=request.email), owner)


def list_users(caller: Caller, org: str | None) -> admin.UserList:
    """By name."""
    owner = _org(caller, org)
    return admin.UserList(users=[_user_view(user, owner) for user in caller.store.orgs.users(owner.id)])


def remove_user(caller: Caller, org: str | None, name: str) -> admin.UserRemoved:
    """A person goes, with all keys of theirs."""
    owner = _org(caller, org)
    caller.noted.note("admin", target=name)
    user = _user(caller, owner, name)
    return admin.UserRemoved(id=user.id, name=user.name, revoked_keys=caller.store.orgs.remove_user(owner.id, user.id))


def _only_ours(caller: Caller) -> None:
    caller.administer()
    if caller.org_id != ORG_LOCAL:
        raise ForbiddenError("organisations are managed by the server's own")


def _org_view(caller: Caller, org: Organisation) -> admin.OrgView:
    documents, size = caller.store.orgs.usage(org.id)
    created = iso_ms(org.created_at_ms)
    return admin.OrgView(id=org.id, name=org.name, limits=dict(org.limits), documents=documents, bytes=size, created_at=created)


def add_org(caller: Caller, request: admin.OrgRequest) -> admin.OrgView:
    """A new organisation, empty."""
    _only_ours(caller)
    caller.noted.note("admin", target=request.name)
    return _org_view(caller, caller.store.orgs.create(request.name, limits=request.limits))


def list_orgs(caller: Caller) -> admin.OrgList:
    """By name, with what they hold."""
    _only_ours(caller)
    return admin.OrgList(orgs=[_org_view(caller, org) for org in caller.store.orgs.all()])


def remove_org(caller: Caller, name: str) -> admin.OrgRemoved:
    """An organisation without containers, with its people and keys."""
    _only_ours(caller)
    org = _org(caller, name)
    caller.noted.note("admin", target=name)
    caller.store.orgs.remove(org.id)
    return admin.OrgRemoved(id=org.id, name=org.name)


def audit(
    caller: Caller,
    org: str | None,
    *,
    since_ms: int,
    before: int | None,
    key: str | None,
    user: str | None,
    action: str | None,
    container: str | None,
    limit: int,
) -> admin.AuditPage:
    """What was done, newest first. `key` and `user` are ids or names."""
    owner = _org(caller, org)
    keys = {known.id: known.name for known in caller.store.keys.all(owner.id)}
    names = _names(caller, owner)
    found_key = None if key is None else caller.store.keys.find(owner.id, key)
    found_user = None if user is None else caller.store.orgs.user(owner.id, user)
    query = AuditQuery(
        org_id=owner.id,
        since_ms=since_ms,
        before=before,
        key_id=key if found_key is None else found_key.id,
        user_id=user if found_user is None else found_user.id,
        action=action,
        container=container,
    )
    events = caller.store.audit.find(query, limit=limit)
    return admin.AuditPage(
        events=[
            admin.AuditView(
                id=event.id,
                at=iso_ms(event.at_ms),
                org=owner.name,
                user=None if event.user_id is None else names.get(event.user_id, event.user_id),
                key_id=event.key_id,
                key=keys.get(event.key_id),
                action=event.action,  # type: ignore[arg-type]
                call=event.call,
                container=event.container,
                target=event.target,
                status=event.status,
                request_id=event.request_id,
                address=event.address,
            )
            for event in events
        ],
        next=events[-1].id if len(events) == limit else None,
    )
