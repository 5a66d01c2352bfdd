"""What stands before the routes beside Host and Origin: keys that live, rates, quotas, proxies, the audit log."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import httpx
import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import UsageError
from memdir.core.ids import new_id
from memdir.server.dispatcher import Dispatcher
from memdir.server.errors import AuthenticationError, QuotaError, RateError
from memdir.server.http.audit_log import QUEUE_MAX, Auditor
from memdir.server.http.authentication import CACHE_S, Authenticator
from memdir.server.http.proxies import Proxies
from memdir.server.http.rate_limits import USAGE_S, Quotas, Rates
from memdir.store.accounts.audit import ROWS_MAX, AuditEvent, AuditQuery, Recording, record_with_change
from memdir.store.accounts.keys import ApiKey
from memdir.store.accounts.orgs import ORG_LOCAL
from memdir.store.errors import InvalidError, PreconditionError
from memdir.store.sqlite.store import SqliteStore
from tests.server.conftest import Putting
from tests.servers import ServerProcess

DAY_MS = 86_400_000
NOW_MS = FakeClock().now_ns() // 1_000_000


def key(**fields: Any) -> ApiKey:
    return ApiKey(**{"id": "k", "org_id": ORG_LOCAL, "name": "n", **fields})


# keys that live


def ask(store: SqliteStore, work: Callable[[Authenticator], Any], now_s: Callable[[], float] = lambda: 0.0) -> Any:
    """Run `work` with an authenticator on a loop."""

    async def run() -> Any:
        dispatcher = Dispatcher()
        dispatcher.attach()
        try:
            return await work(Authenticator(store, dispatcher, monotonic_s=now_s))
        finally:
            dispatcher.shutdown()

    return asyncio.run(run())


def test_a_key_is_looked_up_once_in_a_while_and_forgotten_when_told(store: SqliteStore) -> None:
    made, secret = store.keys.create(org_id=ORG_LOCAL, name="n")
    now_s = [0.0]

    async def work(authenticator: Authenticator) -> None:
        header = f"Bearer {secret}"
        assert (await authenticator.key_of(header)).id == made.id
        store.keys.revoke(made.id)
        assert (await authenticator.key_of(header)).id == made.id, "another process revoked it a moment ago"
        now_s[0] = CACHE_S
        with pytest.raises(AuthenticationError):
            await authenticator.key_of(header)

    ask(store, work, lambda: now_s[0])


def test_what_this_process_revokes_ends_at_once(store: SqliteStore) -> None:
    made, secret = store.keys.create(org_id=ORG_LOCAL, name="n")

    async def work(authenticator: Authenticator) -> None:
        await authenticator.key_of(f"Bearer {secret}")
        store.keys.revoke(made.id)
        authenticator.forget()
        with pytest.raises(AuthenticationError):
            await authenticator.key_of(f"Bearer {secret}")

    ask(store, work)


@pytest.mark.promise("keys.life")
def test_a_key_ends_at_its_time_although_it_was_just_used(store: SqliteStore, clock: FakeClock) -> None:
    _, secret = store.keys.create(org_id=ORG_LOCAL, name="n", expires_at_ms=clock.now_ns() // 1_000_000 + 1000)

    async def work(authenticator: Authenticator) -> None:
        await authenticator.key_of(f"bearer  {secret} ")
        clock.advance(1.0)
        with pytest.raises(AuthenticationError, match="expired"):
            await authenticator.key_of(f"Bearer {secret}")

    ask(store, work)


@pytest.mark.promise("keys.life")
def test_expired_revoked_and_rotated_keys_open_nothing(client: httpx.Client, server: ServerProcess, tag: str) -> None:
    secrets = {}
    for name in ("revoked", "rotated", "living"):
        made = client.post("/v1/keys", json={"name": f"{name} {tag}", "containers": [tag]})
        assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
        secrets[name] = made.json()["key"]
    assert client.delete(f"/v1/keys/revoked {tag}").status_code == 200
    fresh = client.post(f"/v1/keys/rotated {tag}/rotate", json={}).json()
    for secret, status in ((secrets["revoked"], 401), (secrets["rotated"], 401), (secrets["living"], 404), (fresh["key"], 404)):
        with server.client(Authorization=f"Bearer {secret}") as holder:
            assert holder.get("/v1/files/a", params={"containerTag": tag}).status_code == status
    listed = {item["name"]: item["state"] for item in client.get("/v1/keys").json()["keys"] if tag in item["name"]}
    assert listed[f"revoked {tag}"] == "revoked"
    assert listed[f"living {tag}"] == "active"
    assert client.delete(f"/v1/keys/revoked {tag}").status_code == 404
    assert secrets["living"] not in client.get("/v1/keys").text
    assert client.post("/v1/keys", json={"name": f"living {tag}"}).status_code == 409


# rates and quotas


def test_a_bucket_holds_a_minute_and_fills_evenly() -> None:
    now_s = [0.0]
    rates = Rates(monotonic_s=lambda: now_s[0])
    limited = key(limits={"requestsPerMinute": 3})
    assert [standing.remaining for standing in (rates.take(limited) for _ in range(3)) if standing] == [2, 1, 0]
    with pytest.raises(RateError) as refused:
        rates.take(limited)
    assert refused.value.retry_after_s == 20
    now_s[0] = 20.0
    assert rates.take(limited) is not None
    with pytest.raises(RateError):
        rates.take(limited)
    assert rates.take(key(id="other", limits={"requestsPerMinute": 1})) is not None
    assert rates.take(key(id="free")) is None
    assert Rates(default_per_minute=7).take(key()) is not None


def test_the_memory_of_rates_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdir.server.http.rate_limits.BUCKETS_MAX", 10)
    rates = Rates(default_per_minute=5)
    for number in range(50):
        rates.take(key(id=str(number)))
    assert len(rates._buckets) == 10


def test_a_quota_counts_what_the_containers_of_a_key_hold(store: SqliteStore, put: Putting) -> None:
    now_s = [0.0]
    quotas = Quotas(store, monotonic_s=lambda: now_s[0])
    put("/p/a.md", b"12345")
    put("/q/b.md", b"1234567890")
    bound = key(containers=("notes",), prefix="/p", limits={"bytes": 10, "documents": 3})
    quotas.check(bound, 3)
    with pytest.raises(QuotaError, match="8 are used"):
        quotas.check(bound, 3)
    now_s[0] = USAGE_S
    quotas.check(bound, 5)
    quotas.check(key(id="elsewhere", containers=("other",), limits={"bytes": 1}), 1)
    with pytest.raises(QuotaError, match="2 documents"):
        quotas.check(key(id="full", limits={"documents": 2}), 0)


def test_an_organisation_has_a_quota_too(store: SqliteStore) -> None:
    org = store.orgs.create("small", limits={"bytes": 100})
    quotas = Quotas(store)
    quotas.check(key(org_id=org.id), 60)
    with pytest.raises(QuotaError, match="the organisation"):
        quotas.check(key(id="another", org_id=org.id), 60)


@pytest.mark.promise("keys.rates")
def test_a_key_is_told_when_to_come_back_and_what_it_may_hold(client: httpx.Client, server: ServerProcess, tag: str) -> None:
    at = {"containerTag": tag}

    def holder(**limits: int) -> httpx.Client:
        made = client.post("/v1/keys", json={"name": new_id(), "containers": [tag], "limits": limits}).json()
        return server.client(Authorization=f"Bearer {made['key']}")

    with holder(requestsPerMinute=2) as fast:
        first = fast.put("/v1/files/a.md", params=at, content=b"12345")
        assert (first.status_code, first.headers["ratelimit-limit"], first.headers["ratelimit-remaining"]) == (201, "2", "1")
        assert fast.get("/v1/files/a.md", params=at).status_code == 200
        refused = fast.get("/v1/files/a.md", params=at)
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 30
        assert "2 times a minute" in refused.json()["error"]
    with holder(bytes=10) as small:
        assert small.put("/v1/files/b.md", params=at, content=b"123456").status_code == 413
        began = time.monotonic()
        ops = [
            {"op": "put", "path": "/c.md", "contentBase64": "MTIzNDU2Nzg5MA=="},
            {"op": "delete", "path": "/a.md"},
        ]
        batch = small.post("/v1/files:batch", json=at | {"operations": ops}).json()["results"]
        assert [item["status"] for item in batch] == [413, 200], "what frees room is always allowed"
        assert "quota" in batch[0]["error"]
        assert time.monotonic() - began < 5, "a refusal holds up nothing that comes after it"
    assert client.get("/v1/files", params=at).json()["entries"] == []


# proxies


@pytest.mark.parametrize(
    ("trusted", "peer", "headers", "address", "host"),
    [
        ([], "10.0.0.9", {"x-forwarded-for": "1.2.3.4", "x-forwarded-host": "evil"}, "10.0.0.9", "h"),
        (["10.0.0.9"], "10.0.0.8", {"x-forwarded-for": "1.2.3.4"}, "10.0.0.8", "h"),
        (["10.0.0.9"], "10.0.0.9", {"x-forwarded-for": "1.2.3.4"}, "1.2.3.4", "h"),
        (["10.0.0.0/8"], "10.0.0.9", {"x-forwarded-for": "6.6.6.6, 1.2.3.4, 10.0.0.3"}, "1.2.3.4", "h"),
        (
            ["::1"],
            "::1",
            {"x-forwarded-for": "[2001:db8::5]:4711", "x-forwarded-host": "m.example"},
            "2001:db8::5",
            "m.example",
        ),
        (["10.0.0.9"], "10.0.0.9", {"x-forwarded-for": "<script>"}, "unknown", "h"),
        (["10.0.0.9"], "10.0.0.9", {}, "10.0.0.9", "h"),
    ],
)
def test_forwarded_headers_are_believed_from_named_proxies_only(
    trusted: list[str], peer: str, headers: dict[str, str], address: str, host: str
) -> None:
    found = Proxies(trusted).peer({"client": (peer, 1)}, {"host": "h", **headers})
    assert (found.address, found.host) == (address, host)


def test_a_proxy_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError):
        Proxies(["somewhere"])
    with pytest.raises(InvalidError):
        Proxies(["1.1.1.1"]).peer({"client": ("1.1.1.1", 1)}, {"x-forwarded-for": ",".join(["2.2.2.2"] * 21)})


# the audit log


def event(**fields: Any) -> AuditEvent:
    given = {
        "at_ms": NOW_MS, "org_id": ORG_LOCAL, "user_id": None, "key_id": "k", "action": "read", "call": "GET /v1/files",
        "container": "notes", "target": "/a.md", "status": 200, "request_id": "r", "address": "127.0.0.1",
    }  # fmt: skip
    return AuditEvent(**{**given, **fields})


def test_events_are_found_by_who_what_and_where(store: SqliteStore) -> None:
    store.audit.add(
        [
            event(key_id="a", container="notes,work"),
            event(action="write", at_ms=NOW_MS + 5),
            event(org_id="other"),
            event(container="no%tes", user_id="u"),
        ]
    )

    def found(**wanted: Any) -> list[int]:
        return [e.id for e in store.audit.find(AuditQuery(**{"org_id": ORG_LOCAL, **wanted}))]

    assert found() == [4, 2, 1]
    assert found(key_id="a") == [1]
    assert found(action="write") == [2]
    assert found(since_ms=NOW_MS + 2) == [2]
    assert found(user_id="u") == [4]
    assert found(container="work") == [1]
    assert found(container="notes") == [2, 1]
    assert found(container="no%tes") == [4]
    assert found(container="ote") == []
    assert found(before=4) == [2, 1]
    assert found(org_id="other") == [3]
    assert len(store.audit.find(AuditQuery(org_id=ORG_LOCAL), limit=2)) == 2


def test_old_events_go(store: SqliteStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    now_ms = clock.now_ns() // 1_000_000
    store.audit.add([event(at_ms=now_ms - 91 * DAY_MS), event(at_ms=now_ms), event(at_ms=now_ms)])
    assert store.audit.sweep() == 1
    monkeypatch.setattr("memdir.store.accounts.audit.ROWS_MAX", 1)
    assert store.audit.sweep() == 1
    assert [e.id for e in store.audit.find(AuditQuery(org_id=ORG_LOCAL))] == [3]
    assert ROWS_MAX == 1_000_000


@pytest.fixture
def auditor(store: SqliteStore) -> Iterator[Auditor]:
    made = Auditor(store)
    made.start()
    yield made
    made.stop()


def test_a_change_is_on_record_when_recording_returns(store: SqliteStore, auditor: Auditor) -> None:
    asyncio.run(auditor.record(event(action="write")))
    assert len(store.audit.find(AuditQuery(org_id=ORG_LOCAL))) == 1


def test_what_was_noted_is_written_at_the_end(store: SqliteStore, auditor: Auditor) -> None:
    made, _ = store.keys.create(org_id=ORG_LOCAL, name="n")
    for _ in range(2500):
        auditor.note(event(key_id=made.id, at_ms=NOW_MS + 7))
    assert auditor.stop()
    assert len(store.audit.find(AuditQuery(org_id=ORG_LOCAL), limit=1000)) == 1000
    found = store.keys.find(ORG_LOCAL, made.id)
    assert found is not None
    assert found.last_used_at_ms == NOW_MS + 7


def test_a_database_that_refuses_holds_nobody_up_and_loses_nothing_that_fits(
    store: SqliteStore, auditor: Auditor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole, refused = store.audit.add, threading.Event()

    def broken(_: object) -> None:
        refused.set()
        raise OSError("no room")

    monkeypatch.setattr(store.audit, "add", broken)
    asyncio.run(auditor.record(event(action="write")))
    assert refused.is_set()
    for _ in range(QUEUE_MAX + 5):
        auditor.note(event())
    monkeypatch.setattr(store.audit, "add", whole)
    assert auditor.stop(timeout_s=30.0)
    row = store.audit._db.one("select count(*) from audit")
    assert row is not None
    assert QUEUE_MAX - 5 <= row[0] <= QUEUE_MAX + 6, "the first one, and those that came while one was being written"
    assert "could not be written" in caplog.text


def test_a_change_of_the_tree_is_recorded_in_its_own_transaction(store: SqliteStore, put: Putting) -> None:
    """Once for each call, on the commit and not without it."""
    entry = Recording(lambda created: event(action="write", status=201 if created else 200))

    def recorded() -> list[int]:
        return [e.status for e in store.audit.find(AuditQuery(org_id=ORG_LOCAL))]

    def call() -> None:
        record_with_change(entry)
        with pytest.raises(PreconditionError):
            put("/a.md", if_match=3)
        assert (recorded(), entry.done) == ([], False), "a refused change changed nothing"
        put("/a.md")
        put("/b.md")

    copy_context().run(call)
    assert (recorded(), entry.done) == ([201], True)
    put("/c.md")
    assert recorded() == [201], "nobody asked for a row here"


def test_a_change_that_fails_to_commit_leaves_no_row(store: SqliteStore, put: Putting, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the row cannot be written")

    monkeypatch.setattr("memdir.store.tree.files.insert_events", broken)

    def call() -> None:
        record_with_change(Recording(lambda created: event(action="write")))
        with pytest.raises(RuntimeError):
            put("/a.md")

    copy_context().run(call)
    container = store.containers.get(ORG_LOCAL, "notes")
    assert store.documents.at(container.id, "/a.md") is None, "no change without its row either"


@pytest.mark.promise("keys.audit")
def test_changes_and_reads_can_be_asked_for(client: httpx.Client, server: ServerProcess, tag: str) -> None:
    at = {"containerTag": tag}
    anna = client.post("/v1/users", json={"name": f"Anna {tag[-20:]}"}).json()
    made = client.post("/v1/keys", json={"name": f"k {tag[-20:]}", "containers": [tag], "user": anna["id"]}).json()
    with server.client(Authorization=f"Bearer {made['key']}") as holder:
        put = holder.put("/v1/files/diary/secret-words.md", params=at, content=b"words nobody may see")
        assert put.status_code == 201
        holder.post("/v3/documents", json=at | {"content": "more words nobody may see", "filepath": "/b.md"})
        holder.post("/v1/search", json=at | {"q": "words nobody", "mode": "literal"})
        holder.get("/v1/files/diary/secret-words.md", params=at, headers={"X-Request-Id": "from-my-proxy-1"})
        holder.delete("/v1/files/absent", params=at)
        assert holder.get("/v1/audit").status_code == 403
        assert holder.get("/v1/keys").status_code == 403

    def events(**wanted: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = client.get("/v1/audit", params={"container": tag, **wanted}).json()["events"]
        return found

    written = events(action="write")
    assert [(e["call"], e["target"], e["status"]) for e in written[-2:]] == [
        ("POST /v3/documents", "/b.md", 200),
        ("PUT /v1/files/{path:path}", "/diary/secret-words.md", 201),
    ], "a change is on record when it is answered"
    assert written[-1]["requestId"] == put.headers["x-request-id"]
    assert (written[-1]["user"], written[-1]["keyId"], written[-1]["key"]) == (anna["name"], made["id"], made["name"])
    assert written[-1]["address"] == "127.0.0.1"
    reads: list[dict[str, Any]] = []
    for _ in range(100):
        reads = events(action="read", key=made["name"])
        if len(reads) >= 2:
            break
        threading.Event().wait(0.05)
    assert {(e["call"], e["requestId"]) for e in reads} >= {("GET /v1/files/{path:path}", "from-my-proxy-1")}
    assert any(e["call"] == "POST /v1/search" for e in reads)
    everything = client.get("/v1/audit", params={"limit": 1000}).text
    for never in ("nobody may see", "words nobody", made["key"], server.key):
        assert never not in everything


def test_organisations_are_managed_by_the_servers_own(client: httpx.Client, server: ServerProcess, tag: str) -> None:
    org = client.post("/v1/orgs", json={"name": tag}).json()
    body = {"name": "boss", "actions": ["read", "write", "admin"]}
    made = client.post("/v1/keys", params={"org": tag}, json=body).json()
    assert made["org"] == tag
    with server.client(Authorization=f"Bearer {made['key']}") as boss:
        assert boss.get("/v3/session").json()["org"] == {"id": org["id"], "name": tag}
        assert [item["name"] for item in boss.get("/v1/keys").json()["keys"]] == ["boss"]
        assert boss.get("/v1/orgs").status_code == 403
        for name in ("local", "no such organisation"):
            assert boss.get("/v1/keys", params={"org": name}).status_code == 403
        assert boss.put("/v1/files/a", params={"containerTag": tag}, content=b"x").status_code == 201
        assert client.get("/v1/files/a", params={"containerTag": tag}).status_code == 404, "not even the server's own sees it"
        assert client.delete(f"/v1/orgs/{tag}").status_code == 409
        assert boss.delete(f"/v3/container-tags/{tag}").status_code == 204
    assert client.delete(f"/v1/orgs/{org['id']}").status_code == 200
    with server.client(Authorization=f"Bearer {made['key']}") as boss:
        assert boss.get("/v3/session").status_code == 401
