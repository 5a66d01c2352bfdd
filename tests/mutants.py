"""Changes of the code, one at a time, to see whether the tests notice: `python -m tests.mutants planner queue renames`.

Written here rather than taken from a tool for two reasons. Half of the queue is SQL, which the tools leave alone or break so
that it does not parse. And a mutant is put in by exchanging the code object of one function, in a fork of a process that has
imported everything: so it costs a tenth of a second and not several.

Changed are the bodies of functions: comparisons, `and`/`or`/`not`, conditions, numbers, signs, calls and assignments left out,
results left out, actions of the planner, and in SQL comparisons, conjunctions, states, numbers, and what orders rows. Left
alone are messages, logs, assertions and docstrings.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import inspect
import io
import itertools
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Final

import pytest

TIMEOUT_S: Final = 300.0
MODULES: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "planner": ("memdir.sync.planner", "try_planner", ("test_trees.py", "test_planner.py")),
    "moves": ("memdir.sync.push.moves", "try_queue", ("test_queue.py", "test_renames.py")),
    "queue": ("memdir.sync.push.queue", "try_queue", ("test_queue.py", "test_renames.py", "test_engine.py")),
    "renames": ("memdir.sync.push.renames", "", ("test_renames.py", "test_engine.py", "test_convergence.py", "test_faults.py")),
}
"""Short names: the module, the short form of its tests in `tests.sync.test_mutants` that is tried first, and the tests."""
_LOOK_S: Final = 0.5
_FLAGS: Final = ("-x", "-q", "-m", "not long", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "-W", "ignore")
_TESTS: Final = Path(__file__).parent / "sync"

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult,
}  # fmt: skip
_SQL: Final = re.compile(r"\b(select|insert into|update|delete from|where|on conflict|union|exists)\b")
_SQL_CHANGES: Final = (
    (" != ", " = "), (" = ", " != "), (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" and ", " or "),
    (" or ", " and "), ("+ 1", "+ 0"), ("min(", "max("), ("max(", "min("), (" desc", ""), (" is null", " is not null"),
    (" is not null", " is null"), ("'ready'", "'parked'"), ("'parked'", "'ready'"), ("'inflight'", "'parked'"),
    (" = 0", " = 1"), ("sent_hash = null", "sent_hash = sent_hash"), ("deep = 0", "deep = deep"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change. `codes` are the changed functions by qualified name."""

    module: str
    line: int
    what: str
    codes: dict[str, CodeType]

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.what}"


# --- making them ---------------------------------------------------------------------------------------------------------


def mutants(module: ModuleType, *, sample: int | None = None, seed: int = 1) -> list[Mutant]:
    """Every change of a module's functions, or `sample` of them, in the order of its code."""
    file = module.__file__
    assert file is not None
    source = Path(file).read_text(encoding="utf-8")
    actions = sorted(name for name, value in vars(module).items() if type(value).__name__ == "Action")
    original = _codes(compile(source, file, "exec"))
    numbers: Sequence[int] = range(sum(1 for _ in _changes(ast.parse(source), actions, wanted=None)))
    if sample is not None and sample < len(numbers):
        numbers = sorted(random.Random(seed).sample(numbers, sample))
    found = []
    for number in numbers:
        changed = ast.parse(source)
        line, what = next(itertools.islice(_changes(changed, actions, wanted=number), number, None))
        codes = _codes(compile(ast.fix_missing_locations(changed), file, "exec"))
        different = {name: code for name, code in codes.items() if code != original[name]}
        if different and all(code.co_freevars == original[name].co_freevars for name, code in different.items()):
            found.append(Mutant(module=module.__name__, line=line, what=what, codes=different))
    return found


def _codes(code: CodeType) -> dict[str, CodeType]:
    """The functions and methods of a compiled module; what is nested in them goes along."""
    found: dict[str, CodeType] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                found[constant.co_qualname] = constant
            else:
                found |= _codes(constant)
    return found


def _changes(whole: ast.Module, actions: list[str], *, wanted: int | None) -> Iterator[tuple[int, str]]:
    """Name every possible change; the one numbered `wanted` is made on the way."""
    count = 0
    for function in ast.walk(whole):
        if not isinstance(function, ast.FunctionDef):
            continue
        for owner, field, index, node in list(_nodes(function)):
            for what, make in _of(node, actions):
                if count == wanted:
                    _put(owner, field, index, make(copy.deepcopy(node)))
                count += 1
                yield getattr(node, "lineno", function.lineno), what


def _nodes(top: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Every node below `top` with its place, without what no test should have to notice."""
    for field, value in ast.iter_fields(top):
        if field in ("annotation", "returns", "decorator_list", "args") and isinstance(top, (ast.FunctionDef, ast.AnnAssign)):
            continue
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if not isinstance(child, ast.AST) or _is_talk(child):
                continue
            yield top, field, index, child
            if not isinstance(child, ast.FunctionDef):
                yield from _nodes(child)


def _is_talk(node: ast.AST) -> bool:
    if isinstance(node, (ast.Assert, ast.Raise, ast.JoinedStr, ast.FunctionDef)):
        return True
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Constant):
        return True
    call = node.value
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and ast.unparse(call.func).startswith("log.")


def _put(owner: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(owner, field, node)
    else:
        getattr(owner, field)[index] = node


Change = tuple[str, Callable[[ast.AST], ast.AST]]


def _of(node: ast.AST, actions: list[str]) -> Iterator[Change]:
    """The changes of one node."""
    text = ast.unparse(node)[:60].replace("\n", " ") if isinstance(node, (ast.expr, ast.stmt)) else ""
    match node:
        case ast.Compare():
            for number, operator in enumerate(node.ops):
                if type(operator) in _COMPARISONS:
                    yield f"{text}: turned", lambda new, number=number: _turned(new, number)
        case ast.BoolOp():
            yield f"{text}: and for or", _with("op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
            for number in range(len(node.values)):
                yield f"{text}: without part {number + 1}", lambda new, number=number: _shorter(new, number)
        case ast.UnaryOp(op=ast.Not()):
            yield f"{text}: without not", lambda new: new.operand  # type: ignore[attr-defined]
        case ast.If() | ast.IfExp() | ast.While() if not isinstance(node.test, (ast.Compare, ast.BoolOp)):
            yield f"if {ast.unparse(node.test)[:50]}: negated", _negated
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _OPERATORS:
            yield f"{text}: other operator", _with("op", _OPERATORS[type(node.op)]())
        case ast.Constant(value=bool() | int() | float()):
            value = node.value
            other = not value if isinstance(value, bool) else value + 1  # type: ignore[operator]
            yield f"{value} becomes {other}", _with("value", other)
        case ast.Constant(value=str()) if _SQL.search(node.value):
            yield from _of_sql(node.value)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield f"{text}: nothing", _with("value", ast.Constant(None))
        case ast.Expr() | ast.Assign() | ast.AugAssign() if not isinstance(node, ast.Assign) or _is_attribute(node):
            yield f"{text}: left out", lambda _: ast.Pass()
        case ast.Continue() | ast.Break():
            other_jump = ast.Break if isinstance(node, ast.Continue) else ast.Continue
            yield f"{text}: the other", lambda _: other_jump()
        case ast.Name(id=name) if name in actions:
            other_name = actions[(actions.index(name) + 1) % len(actions)]
            yield f"{other_name} for {name}", _with("id", other_name)
        case _:
            return


def _of_sql(text: str) -> Iterator[Change]:
    for old, new in _SQL_CHANGES:
        for found in re.finditer(re.escape(old), text):
            changed = text[: found.start()] + new + text[found.end() :]
            around = text[max(0, found.start() - 20) : found.end() + 20]
            yield f"SQL …{around}…: {new!r} for {old!r}", _with("value", changed)


def _is_attribute(node: ast.Assign) -> bool:
    """Without a local name's assignment the function only fails; that is no change worth a run."""
    return isinstance(node.targets[0], (ast.Attribute, ast.Subscript))


def _with(field: str, value: object) -> Callable[[ast.AST], ast.AST]:
    def change(node: ast.AST) -> ast.AST:
        setattr(node, field, value)
        return node

    return change


def _turned(node: ast.AST, number: int) -> ast.AST:
    assert isinstance(node, ast.Compare)
    node.ops[number] = _COMPARISONS[type(node.ops[number])]()
    return node


def _shorter(node: ast.AST, number: int) -> ast.AST:
    assert isinstance(node, ast.BoolOp)
    del node.values[number]
    return node if len(node.values) > 1 else node.values[0]


def _negated(node: ast.AST) -> ast.AST:
    assert isinstance(node, (ast.If, ast.IfExp, ast.While))
    node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)
    return node


# --- putting them in -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def put_in(mutant: Mutant) -> Iterator[None]:
    """For a while the functions are the changed ones, for everybody who has imported them."""
    module = importlib.import_module(mutant.module)
    before: list[tuple[FunctionType, CodeType]] = []
    try:
        for name, code in mutant.codes.items():
            function = _function(module, name)
            before.append((function, function.__code__))
            function.__code__ = code
        yield
    finally:
        for function, code in before:
            function.__code__ = code


def _function(module: ModuleType, qualified: str) -> FunctionType:
    found: object = module
    for part in qualified.split("."):
        found = inspect.getattr_static(found, part)
        found = found.fget if isinstance(found, property) else found
        found = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
    function = inspect.unwrap(found)  # type: ignore[arg-type]
    assert isinstance(function, FunctionType)
    return function


# --- running tests on them -----------------------------------------------------------------------------------------------


def _run(mutant: Mutant, attempt: Callable[[], None], tests: tuple[str, ...]) -> int:
    """Fork: run the tests on the mutant; the number of the process."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    code = 1
    try:
        files = [str(_TESTS / name) for name in tests]
        with put_in(mutant), contextlib.redirect_stdout(io.StringIO()):
            attempt()
            code = int(pytest.main([*_FLAGS, *files]))
    finally:
        os._exit(0 if code == 0 else 1)


def survivors(chosen: list[Mutant], attempt: Callable[[], None], tests: tuple[str, ...], *, jobs: int) -> list[Mutant]:
    """Those on which every test passes. A run that takes too long counts as noticed."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    left, waiting, running = [], list(reversed(chosen)), dict[int, tuple[Mutant, float]]()
    done = 0
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[_run(mutant, attempt, tests)] = (mutant, time.monotonic())
        for child, (mutant, since_s) in list(running.items()):
            if time.monotonic() - since_s > TIMEOUT_S:
                os.killpg(child, signal.SIGKILL)
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                del running[child]
                done += 1
                if os.waitstatus_to_exitcode(status) == 0:
                    left.append(mutant)
                    sys.stderr.write(f"passed: {mutant}\n")
                if done % 25 == 0:
                    sys.stderr.write(f"{done} of {len(chosen)}\n")
        signal.sigtimedwait([signal.SIGCHLD], _LOOK_S)
    return left


def main() -> int:
    """0 when at least nine of ten are noticed in every module."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("modules", nargs="*", default=list(MODULES), help=f"of {', '.join(MODULES)}; all without")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    parser.add_argument("--sample", type=int, help="so many of each module, drawn with --seed")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    report = {}
    for name in arguments.modules:
        module_name, short, tests = MODULES[name]
        attempt = getattr(importlib.import_module("tests.sync.test_mutants"), short) if short else lambda: None
        for test in tests:
            importlib.import_module(f"tests.sync.{test.removesuffix('.py')}")
        chosen = mutants(importlib.import_module(module_name), sample=arguments.sample, seed=arguments.seed)
        unchanged = Mutant(module=module_name, line=0, what="nothing", codes={})
        if not survivors([unchanged], attempt, tests, jobs=1):
            sys.stderr.write(f"the tests of {name} fail without any change; nothing can be said\n")
            return 2
        left = survivors(chosen, attempt, tests, jobs=arguments.jobs)
        report[name] = {
            "mutants": len(chosen), "noticed": len(chosen) - len(left),
            "share": round(1 - len(left) / len(chosen), 3), "survivors": [str(mutant) for mutant in left],
        }  # fmt: skip
    sys.stdout.write(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return 0 if all(isinstance(one["share"], float) and one["share"] >= 0.9 for one in report.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
