"""The published 5.x Python client of Supermemory, unmodified, against `memdir server run`: it gets a base URL and a key."""

from __future__ import annotations

import pytest

from tests.acceptance.driver import Address
from tests.acceptance.published import python_package, run_python

PACKAGE = "supermemory==5.0.1"
SCENARIOS = ("documents", "batch", "files", "search", "memories", "namespaces", "errors", "together")


@pytest.mark.promise("sdk.python-5")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_python_sdk_5_works_with_a_url_and_a_key(
    tmp_path_factory: pytest.TempPathFactory, address: Address, scenario: str
) -> None:
    package = python_package(PACKAGE, tmp_path_factory)
    run_python(package, "python5.py", scenario, address.url, address.key, f"ns-{scenario}")
