"""What the tests of this room share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memdir.ingest.sandbox import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()
