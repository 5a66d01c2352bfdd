"""Published clients of the Supermemory API, unmodified, against `memdir server run`: a base URL and a key are all they get."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.acceptance.driver import Address
from tests.acceptance.published import node_package, python_package, run_node, run_python

NEWEST_3 = "supermemory==3.62.0"
OLDEST_3 = "supermemory==3.1.0"
_numbers = itertools.count(1)


@pytest.fixture
def tag() -> str:
    """A container of the test's own."""
    return f"sdk-{next(_numbers)}"


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_package(NEWEST_3, tmp_path_factory)


@pytest.fixture(scope="module")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return node_package("supermemory@4", tmp_path_factory)


@pytest.mark.promise("sdk.python-3", "api.container-spellings", "api.custom-ids")
@pytest.mark.parametrize("scenario", ["documents", "uploads", "search", "together"])
def test_the_python_sdk_3_works_with_a_url_and_a_key(newest: Path, address: Address, tag: str, scenario: str) -> None:
    run_python(newest, "python3.py", scenario, address.url, address.key, tag)


@pytest.mark.promise("sdk.python-3", "api.filters")
def test_the_python_sdk_3_lists_and_filters(newest: Path, address: Address, tag: str) -> None:
    run_python(newest, "python3.py", "lists", address.url, address.key, tag)


@pytest.mark.promise("sdk.python-3", "api.memories")
def test_memories_are_written_revised_and_forgotten_with_the_python_sdk_3(newest: Path, address: Address, tag: str) -> None:
    run_python(newest, "python3.py", "memories", address.url, address.key, tag)


@pytest.mark.promise("sdk.python-3")
def test_each_refusal_is_the_exception_that_the_python_sdk_3_knows(newest: Path, address: Address, tag: str) -> None:
    run_python(newest, "python3.py", "errors", address.url, address.key, tag)


@pytest.mark.promise("sdk.python-3")
def test_the_oldest_python_sdk_3_works_too(tmp_path_factory: pytest.TempPathFactory, address: Address, tag: str) -> None:
    run_python(python_package(OLDEST_3, tmp_path_factory), "python3.py", "oldest", address.url, address.key, tag)


@pytest.mark.promise("sdk.typescript-4")
@pytest.mark.parametrize("scenario", ["documents", "recall", "errors", "together"])
def test_the_typescript_sdk_4_works_with_a_url_and_a_key(typescript: Path, address: Address, tag: str, scenario: str) -> None:
    run_node(typescript, "typescript4.mjs", scenario, address.url, address.key, tag)


@pytest.mark.promise("sdk.typescript-4", "api.conversations")
def test_a_conversation_sent_turn_by_turn_is_one_document_with_memories(typescript: Path, address: Address, tag: str) -> None:
    run_node(typescript, "typescript4.mjs", "conversations", address.url, address.key, tag)


@pytest.mark.promise("sdk.bash")
def test_the_virtual_bash_works_with_a_url_and_a_key(
    tmp_path_factory: pytest.TempPathFactory, address: Address, tag: str
) -> None:
    package = python_package("supermemory-bash==0.0.2", tmp_path_factory)
    run_python(package, "bash.py", address.url, address.key, tag)
