"""The house rules that a linter does not know: short modules, short functions, no swallowed errors, no sleeps in tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "bench").rglob("*.py")])
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MODULE_LINES_MAX = 450
FUNCTION_LINES_MAX = 80


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def statements(node: ast.AST) -> Iterator[ast.stmt | ast.ExceptHandler]:
    """All that stand in a module or a statement, at any depth, and nothing of what they are made of."""
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, name, ()):
            if isinstance(inner, ast.stmt | ast.ExceptHandler):
                yield inner
            yield from statements(inner)


@cache
def long_and_silent() -> tuple[list[str], list[str]]:
    """Functions that are too long, and handlers that swallow every error."""
    long, silent = [], []
    broad = {"Exception", "BaseException"}
    for path in SOURCES:
        for node in statements(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno
                long += [f"{relative(path)}: {node.name}, {lines} lines"] if lines > FUNCTION_LINES_MAX else []
            elif isinstance(node, ast.ExceptHandler) and (
                (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in broad))
                and all(isinstance(statement, ast.Pass | ast.Continue) for statement in node.body)
            ):
                silent.append(f"{relative(path)}:{node.lineno}")
    return long, silent


def test_modules_and_functions_stay_short() -> None:
    assert [relative(path) for path in SOURCES if path.read_bytes().count(b"\n") > MODULE_LINES_MAX] == []
    assert long_and_silent()[0] == []


def test_no_error_is_swallowed_whole() -> None:
    assert long_and_silent()[1] == []


def test_tests_wait_on_events_and_not_on_time() -> None:
    sleeps = [
        f"{name}:{node.lineno}"
        for name, text in ((relative(path), path.read_text(encoding="utf-8")) for path in TESTS)
        for node in (ast.walk(ast.parse(text)) if ".sleep(" in text else ())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sleep"
    ]
    assert sleeps == []


def test_modules_are_called_what_the_glossary_calls_things() -> None:
    """docs/architecture.md, "Words": its last column are names that say nothing to a stranger."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Words\n")[2].partition("\n## ")[0]
    refused = set(re.findall(r"`(\w+)`", "".join(row.rsplit("|", 2)[1] for row in table.splitlines() if row.startswith("| "))))
    assert len(refused) >= 15
    assert [relative(path) for path in SOURCES if path.stem in refused] == []


def test_the_ways_through_name_files_that_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    ways = page.partition("## Ten ways through\n")[2].partition("\n## ")[0]
    assert ways.count("\n**") == 10
    for way in ways.split("\n**")[1:]:
        files = re.findall(r"`([\w/]+\.py)`", way)
        assert 3 < len(files) <= 7
        assert [file for file in files if not (ROOT / "src" / "memdir" / file).is_file()] == []


def test_every_folder_says_what_it_is_for() -> None:
    """And where to start to read. Folders of SQL steps have nothing but their package."""
    silent = [
        relative(path)
        for path in SOURCES
        if path.name == "__init__.py" and path.parent.name != "schema" and not ast.get_docstring(ast.parse(path.read_bytes()))
    ]
    assert silent == []
