"""`memdir doctor`: is this machine fit for memdir, and if not, what to do."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from memdir.cli.command import EXIT_ERROR, EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.output import Output
from memdir.cli.text import visible

if TYPE_CHECKING:
    from memdir.cli.mounts.doctor_checks import Check
    from memdir.core.paths import AppPaths
    from memdir.daemon.registry import MountRegistry


def _configure(parser: Parser) -> None:
    parser.add_argument("--quick", action="store_true", help="leave out the live test: no server, no models, no mount")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import open_registry
    from memdir.core.paths import app_paths

    checks: list[Check] = []
    for check in _all_checks(app_paths(), open_registry(), quick=args.quick):
        checks.append(check)
        if not out.json:
            _print(check, out)
    failed = sum(check.status == "fail" for check in checks)
    warned = sum(check.status == "warn" for check in checks)
    if out.json:
        out.document(
            {"ok": not failed, "failed": failed, "warned": warned, "checks": [dataclasses.asdict(check) for check in checks]}
        )
    elif failed:
        out.line(f"{failed} of {len(checks)} checks failed")
    else:
        out.line("all is well" if not warned else f"nothing failed, {warned} of {len(checks)} deserve a look")
    return EXIT_ERROR if failed else EXIT_NOTHING if warned else EXIT_OK


def _print(check: Check, out: Output) -> None:
    out.line(f"{out.style(f'{check.status:<4}', check.status)}  {check.name:<12}  {visible(check.detail)}")
    if check.repair and check.status != "ok":
        out.line(f"      {'':<12}  repair: {visible(check.repair)}")
    out.flush()


def _all_checks(paths: AppPaths, registry: MountRegistry, *, quick: bool) -> Iterator[Check]:
    from memdir.cli.mounts import doctor_checks

    local: list[tuple[str, Callable[[], Check | list[Check]]]] = [
        ("fuse device", doctor_checks.check_fuse_device),
        ("mount helper", doctor_checks.check_mount_helper),
        ("kernel", doctor_checks.check_kernel),
        ("folders", lambda: doctor_checks.check_folders(paths)),
        ("disk", lambda: doctor_checks.check_disk(paths)),
        ("clock", lambda: doctor_checks.check_clock(registry)),
        ("mounts", lambda: doctor_checks.check_mounts(registry)),
    ]
    if not quick:
        local.append(("models", lambda: doctor_checks.check_models(paths)))
        local.append(("readers", doctor_checks.check_readers))
    for name, check in local:
        yield from _guarded(name, check)
    if not quick:
        yield from _live(paths, registry)


def _live(paths: AppPaths, registry: MountRegistry) -> Iterator[Check]:
    """The server and the round trip through it; a server that was started for this is stopped again."""
    from memdir.cli.mounts.doctor_checks import Check, check_server
    from memdir.cli.mounts.doctor_roundtrip import check_round_trip
    from memdir.client.local import stop_server

    check, server, started = check_server(paths)
    yield check
    if server is None:
        yield Check(name="round trip", status="fail", detail="not possible without a server", repair="repair the server first")
        return
    try:
        yield from _guarded("round trip", lambda: check_round_trip(registry, server))
    finally:
        if started and not any(record.sync and record.state == "alive" for record in registry.all()):
            stop_server(paths)


def _guarded(name: str, check: Callable[[], Check | list[Check]]) -> Iterator[Check]:
    """A check that breaks is a finding too, and stops none of the others."""
    from memdir.cli.mounts.doctor_checks import Check

    try:
        found = check()
    except Exception as error:  # noqa: BLE001  whatever it is, it is reported, and the next check runs
        detail = f"could not be checked: {type(error).__name__}: {error}"
        found = Check(name=name, status="fail", detail=detail, repair=getattr(error, "hint", ""))
    yield from found if isinstance(found, list) else [found]


COMMAND = Command(
    name="doctor",
    usage="[OPTIONS]",
    description=(
        "Check everything that a mount needs: FUSE, folders, disk, models, server; then mount a memory for a moment, write a\n"
        "file, find it by meaning, and take it all away again. Says how to repair what fails."
    ),
    examples=[("memdir doctor", "a line for each check"), ("memdir doctor --json", "checks with name, status, detail, repair")],
    exit_codes=[(0, "all is well"), (1, "nothing failed, but there are warnings"), (2, "a check failed, or an error")],
    configure=_configure,
    run=_run,
)
