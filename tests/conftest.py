"""What holds for every test: no test reaches the user's own memdir, and every promise marker names a promise."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import postgres as pg
from tests.promises import PROMISES
from tests.servers import client, postgres_server, server, sqlite_server, tag

__all__ = ["client", "postgres_server", "server", "sqlite_server", "tag"]
"""Fixtures for all tests."""

# Same seeds, same results; and a busy machine is no failure.
settings.register_profile(
    "house", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # fmt: skip
settings.load_profile("house")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # What a shell starts in the background ignores Ctrl-C, and so would all that the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # until all tests are imported: see pytest_collection_finish

_SERVER_VARIABLES = ("MEMDIR_SERVER_URL", "MEMDIR_API_KEY", "MEMDIR_CREDENTIALS", "MEMDIR_DATABASE_URL")


@pytest.fixture(autouse=True)
def _no_server_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own server settings must not leak into a test."""
    for name in _SERVER_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True, scope="session")
def _private_home(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A test that forgets to set MEMDIR_HOME lands in a folder of the test run and not in the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMDIR_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("MEMDIR_FETCH_URLS", "off")  # no test reaches the web
        yield


@pytest.fixture(autouse=True, scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One folder for all processes and workers of a run: making the int8 model takes longer than most tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "memdir-models"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMDIR_MODELS_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[pg.Postgres]:
    """A PostgreSQL server with pgvector; tests that need it are skipped, visibly, where its package cannot be had."""
    try:
        with pg.running(os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())) as server:
            yield server
    except ImportError:
        pytest.skip(pg.MISSING)


@pytest.fixture
def database_url(postgres: pg.Postgres) -> Iterator[str]:
    """A fresh PostgreSQL database with memdir's schema."""
    with postgres.database() as url:
        yield url


LONG_MODULES = frozenset(
    {
        "acceptance/test_conflicts.py", "acceptance/test_drain.py", "acceptance/test_fsck.py",
        "acceptance/test_mount_helper.py", "acceptance/test_mount_settings.py", "acceptance/test_recover.py",
        "acceptance/test_sdk_3_and_4.py", "acceptance/test_sdk_ns.py", "acceptance/test_tools.py",
        "acceptance/test_two_mounts.py", "acceptance/test_unmount.py", "bench/test_agents_bench.py", "bench/test_posix_run.py",
        "bench/test_research_bench.py", "bench/test_scale_bench.py", "daemon/test_full_disk.py", "daemon/test_lazy.py",
        "daemon/test_server_lives.py", "daemon/test_server_troubles.py", "exercise/test_fsx.py", "exercise/test_writers.py",
        "fs/test_blob_powercut.py", "fs/test_kill.py", "fs/test_kill_calls.py", "fs/test_migration.py",
        "server/pipeline/test_killed_batches.py", "server/pipeline/test_processes.py", "server/test_archive.py",
        "server/test_blobs_live.py", "server/test_two_servers.py", "sync/test_kill.py", "sync/test_mutants.py",
        "traces/test_annotate.py",
    }
)  # fmt: skip
"""Modules that take minutes with real processes, mounts and kills, or measure, of parts that change seldom: in the long lane,
so that the other one ends within its time. Whoever changes what they test runs them: `pytest -m long tests/daemon`."""

_TESTS = Path(__file__).parent
_NO_DEVICE = pytest.mark.skip(reason="/dev/fuse is missing or closed to you; as root: chmod 666 /dev/fuse")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The test lane does not even import what it leaves out."""
    is_long = config.option.markexpr == "not long" and collection_path.is_relative_to(_TESTS)
    return True if is_long and collection_path.relative_to(_TESTS).as_posix() in LONG_MODULES else None


def pytest_collection_finish() -> None:
    """Eleven thousand tests and what they import stay: without this every full collection looks at them again, an eighth of a
    worker's time."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts modules into the long lane; skips mounts where none can be. Fails the run at once: a marker that names no
    promise proves nothing."""
    mountable = os.access("/dev/fuse", os.R_OK | os.W_OK)
    for item in items:
        if item.path.relative_to(_TESTS).as_posix() in LONG_MODULES:
            item.add_marker(pytest.mark.long)
        if item.get_closest_marker("mount") and not mountable:
            item.add_marker(_NO_DEVICE)
    known = {promise.id for promise in PROMISES}
    for item in items:
        for marker in item.iter_markers("promise"):
            unknown = [name for name in marker.args if name not in known]
            if unknown or not marker.args:
                raise pytest.UsageError(f"{item.nodeid}: no such promise: {unknown or 'an empty marker'}")
