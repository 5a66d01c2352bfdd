"""Cases made from the OpenAPI document against a real server: no server error, and no answer that the document does not know.

Half of the cases are what the document allows, half are what it forbids. Names in them (containers, paths, ids) are often
replaced by ones that exist, so that calls get to the end. The seed is fixed: the same cases each time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, strategies
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from memdir.server.docs import described
from tests.servers import ServerProcess, start

CASES_MIN = 400
CASES_MIN_LONG = 50_000
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
TAGS = ("fuzz", "fuzz-2")
PATHS = ("/a.md", "/dir", "/dir/b.md", "/dir/", "/new.md", "/memory/m.md")
OPERATIONS = sorted(
    f"{method.upper()} {path}" for path, methods in described()["paths"].items() for method in methods if path != "/healthz"
)
FAST_WAITS = {"wait": 0.01, "waitMs": 5, "wait_ms": 5}
GROUPS = 4


@schemathesis.serializer("application/x-tar", "application/gzip", "application/zip")
def archive(_: Any, value: Any) -> bytes:
    """Bytes as they are; what is none is sent all the same."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of its own: these cases leave nothing as it was."""
    running = start(tmp_path_factory.mktemp("fuzzed"), "--port", "0")
    yield running
    assert running.stop() == 0
    log = (running.home / "state" / "server.log").read_text(encoding="utf-8")
    assert "Traceback" not in log, log[-3000:]


@pytest.fixture(scope="module")
def operations(fuzzed: ServerProcess) -> dict[str, Any]:
    schema = schemathesis.openapi.from_url(f"{fuzzed.url}/openapi.json", timeout=60)
    found = [result.ok() for result in schema.get_all_operations()]
    return {f"{operation.method.upper()} {operation.path}": operation for operation in found}


def seeded(server: ServerProcess) -> list[str]:
    """Documents that calls can meet; their ids."""
    ids = []
    with server.client() as client:
        for tag in TAGS:
            for path in ("/a.md", "/dir/b.md", "/memory/m.md"):
                body = {"content": f"I prefer {path}", "containerTag": tag, "filepath": path, "metadata": {"n": 1}}
                answer = client.post("/v3/documents", json=body)
                ids.append(answer.json().get("id", "none") if answer.status_code == 200 else "none")
    return ids


def aimed(case: Any, chance: random.Random, ids: list[str]) -> None:
    """Let names in a case often be such as exist."""
    known = {
        "containerTag": TAGS, "containerTags": (list(TAGS), [TAGS[0]]), "tag": TAGS, "namespace": TAGS, "path": PATHS,
        "fromPath": PATHS, "toPath": PATHS, "filepath": PATHS, "prefix": PATHS, "name": ids, "id": ids, "ids": (ids[:2], []),
        "q": ("what do I prefer", "a.md"),
    }  # fmt: skip
    for part in (case.path_parameters, case.query, case.body):
        if not isinstance(part, dict):
            continue
        for name in list(part):
            if name in FAST_WAITS:
                part[name] = FAST_WAITS[name]
            elif name in known and chance.random() < 0.6:
                value = chance.choice(known[name])
                part[name] = value.strip("/") if part is case.path_parameters and isinstance(value, str) else value


def run(server: ServerProcess, operation: Any, examples: int) -> tuple[Counter[int], list[str]]:
    """Cases of one operation: how often each status was answered, and what broke (at most 3 reports)."""
    statuses: Counter[int] = Counter()
    broken: list[str] = []
    session = requests.Session()
    session.trust_env = False
    cases = operation.as_strategy(generation_mode=GenerationMode.POSITIVE) | operation.as_strategy(
        generation_mode=GenerationMode.NEGATIVE
    )

    @hypothesis.seed(17)
    @hypothesis.settings(
        max_examples=examples, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @hypothesis.given(case=cases, number=strategies.integers(0, 2**32))
    def each(case: Any, number: int) -> None:
        ids = seeded(server) if sum(statuses.values()) % 50 == 0 else known_ids
        known_ids[:] = ids
        aimed(case, random.Random(number), ids)
        answer = case.call(headers={"Authorization": f"Bearer {server.key}"}, session=session, timeout=60)
        statuses[answer.status_code] += 1
        try:
            case.validate_response(answer, checks=CHECKS)
        except FailureGroup as failure:
            if len(broken) < 3:
                broken.append(str(failure)[:3000])

    known_ids: list[str] = seeded(server)
    with session:
        each()
    return statuses, broken


@pytest.mark.promise("wire.fuzzed")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_request_brings_the_server_to_an_error_or_to_an_undocumented_answer(
    fuzzed: ServerProcess, operations: dict[str, Any], group: int
) -> None:
    check(fuzzed, operations, group, CASES_MIN)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("group", range(GROUPS))
def test_nor_do_many_more(fuzzed: ServerProcess, operations: dict[str, Any], group: int) -> None:
    check(fuzzed, operations, group, CASES_MIN_LONG)


def check(server: ServerProcess, operations: dict[str, Any], group: int, cases_min: int) -> None:
    """The group's share of the cases; every operation of the group gets the same number."""
    assert sorted(name for name in operations if name != "GET /healthz") == OPERATIONS
    mine = OPERATIONS[group::GROUPS]
    each = -(-cases_min // len(OPERATIONS)) + 2
    count = 0
    reports = []
    for name in mine:
        statuses, broken = run(server, operations[name], each)
        count += statuses.total()
        reports += [f"{name}: {report}" for report in broken]
    assert not reports, "\n\n".join(reports[:5])
    assert count >= cases_min * len(mine) // len(OPERATIONS)
