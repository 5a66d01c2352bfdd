"""Who the caller is, said back to it."""

from __future__ import annotations

from memdir.api import v3
from memdir.core.clock import iso_ms
from memdir.server.http.access import Caller

PLAN = "self-hosted"
EMAIL_UNKNOWN = "local@localhost"
"""Published clients want an address to be there."""


def session(caller: Caller) -> v3.Session:
    """Organisation, user, and what the key opens. A key of nobody in particular stands for itself as the user."""
    key = caller.key
    org = caller.store.orgs.find(key.org_id)
    user = None if key.user_id is None else caller.store.orgs.user(key.org_id, key.user_id)
    if user is None:
        shown = v3.User(id=key.id, name=key.name, email=EMAIL_UNKNOWN)
    else:
        shown = v3.User(id=user.id, name=user.name, email=user.email or EMAIL_UNKNOWN)
    return v3.Session(
        org=v3.Organisation(id=key.org_id, name=key.org_id if org is None else org.name),
        user=shown,
        plan=PLAN,
        key=v3.SessionKey(
            id=key.id,
            name=key.name,
            containers=list(key.containers),
            actions=list(key.actions),
            prefix=key.prefix,
            expires_at=None if key.expires_at_ms is None else iso_ms(key.expires_at_ms),
        ),
    )
