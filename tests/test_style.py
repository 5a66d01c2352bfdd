"""The house rules that a linter does not know: short modules, short functions, no swallowed errors, no sleeps in tests."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "bench").rglob("*.py")])
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MODULE_LINES_MAX = 450
FUNCTION_LINES_MAX = 80


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_modules_and_functions_stay_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MODULE_LINES_MAX
    long = [
        f"{node.name}: {node.end_lineno - node.lineno} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno > FUNCTION_LINES_MAX
    ]
    assert long == []


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_no_error_is_swallowed_whole(path: Path) -> None:
    broad = {"Exception", "BaseException"}
    found = [
        handler.lineno
        for handler in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(handler, ast.ExceptHandler)
        and (handler.type is None or (isinstance(handler.type, ast.Name) and handler.type.id in broad))
        and all(isinstance(statement, ast.Pass | ast.Continue) for statement in handler.body)
    ]
    assert found == []


@pytest.mark.parametrize("path", TESTS, ids=relative)
def test_tests_wait_on_events_and_not_on_time(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    sleeps = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sleep"
    ]
    assert sleeps == []
