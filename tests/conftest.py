"""What holds for every test: no test reaches the user's own memdir, and every promise marker names a promise."""

from __future__ import annotations

import pytest

from tests.promises import PROMISES

_SERVER_VARIABLES = ("MEMDIR_SERVER_URL", "MEMDIR_API_KEY")


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
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fails the run at once: a marker that names no promise proves nothing."""
    known = {promise.id for promise in PROMISES}
    for item in items:
        for marker in item.iter_markers("promise"):
            unknown = [name for name in marker.args if name not in known]
            if unknown or not marker.args:
                raise pytest.UsageError(f"{item.nodeid}: no such promise: {unknown or 'an empty marker'}")
