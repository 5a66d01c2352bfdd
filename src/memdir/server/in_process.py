"""The admin calls while no server runs: the same routes, in this process, over the store.

SQLite's folder is owned by one process, so BusyError tells who has it. The caller is the user who may read the database anyway;
it stands in the audit log as `command line`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, cast

import httpx
from starlette.types import Receive, Scope, Send

from memdir.core.paths import AppPaths
from memdir.server.app import routed
from memdir.server.dispatcher import Dispatcher
from memdir.server.engine import Engine
from memdir.server.http.audit_log import Auditor
from memdir.server.http.guard_policy import GuardPolicy
from memdir.server.http.responses import Answer
from memdir.server.storage import StorageOptions, opened_store
from memdir.store.accounts.keys import ACTIONS, ApiKey
from memdir.store.accounts.orgs import ORG_LOCAL
from memdir.store.acting import act_as
from memdir.store.store import Store

KEY: Final = ApiKey(id="command line", org_id=ORG_LOCAL, name="command line", actions=ACTIONS)


def call(
    paths: AppPaths, method: str, path: str, *, params: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
) -> tuple[int, Any]:
    """Status and JSON of one call."""
    with opened_store(StorageOptions(), paths) as store:
        return asyncio.run(_call(store, method, path, params or {}, body))


async def _call(
    store: Store, method: str, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
) -> tuple[int, Any]:
    dispatcher = Dispatcher()
    dispatcher.attach()
    auditor = Auditor(store)
    auditor.start()
    app = routed(store, dispatcher, cast(Engine, None), policy=GuardPolicy.over(store, dispatcher))  # no admin call searches

    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        answer = Answer(scope, send, auditor)
        answer.admit(KEY, "local", None)
        scope["state"] = {"key": KEY, "noted": answer.noted, "quotas": None, "request_id": answer.request_id}
        act_as(KEY.org_id)
        await app(scope, receive, answer.send)

    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=admitted), base_url="http://localhost") as client:
            answer = await client.request(method, path, params=dict(params), json=body)
            return answer.status_code, answer.json()
    finally:
        await asyncio.to_thread(auditor.stop)
        dispatcher.shutdown()
