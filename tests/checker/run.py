"""Three machines with a mount each, an API client, a network that goes wrong and processes that are killed; afterwards
everything is let be, and the history is judged: `python -m tests.checker.run --seed 1 --seconds 600 --folder /tmp/run`.

The same seed makes the same plan of work and of faults; what meets what is up to the processes.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memdir.client.errors import ClientError
from memdir.core.errors import MemdirError
from tests.checker.history import SERVER, Finding, History, Step, check, story
from tests.checker.machines import CONTAINER, IGNORE_FILE, Machine, Server, server_tree
from tests.checker.proxy import ROUGH, Fault, Proxy
from tests.checker.work import ApiClient, Recorder, Worker

MACHINES = ("a", "b", "c")
_SETTLE_S = 240.0
_LOOK_S = 0.5
_JOIN_S = 150.0
_STORIES_MAX = 5


@dataclass(slots=True, kw_only=True)
class Result:
    """What came of a run. `complaints`: what is wrong beside the history."""

    seed: int
    history: History
    findings: list[Finding]
    complaints: list[str] = field(default_factory=list)
    deeds: Counter[str] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)

    def report(self) -> str:
        """For people: the seed, what is wrong, and what happened to the paths concerned."""
        lines = [f"seed {self.seed}: {len(self.findings)} findings, {len(self.complaints)} complaints; {self.summary()}"]
        lines += [f"  {complaint}" for complaint in self.complaints]
        lines += [f"  {finding}" for finding in self.findings[:50]]
        for path in list(dict.fromkeys(finding.path for finding in self.findings))[:_STORIES_MAX]:
            lines += [f"  --- {path}", *(f"    {line}" for line in story(self.history, path))]
        return "\n".join(lines)

    def summary(self) -> str:
        ops = self.history.ops
        faults = ", ".join(f"{fault.value} {count}" for fault, count in sorted(self.faults.items(), key=str))
        deeds = ", ".join(f"{deed} {count}" for deed, count in sorted(self.deeds.items()))
        return (
            f"{len(ops)} operations ({sum(not op.answered for op in ops)} without an answer), {len(self.history.looks)} looks, "
            f"{len(self.history.steps)} changes of the server; {deeds}; exchanges: {faults}"
        )


class Run:
    """One run in a folder of its own."""

    def __init__(self, folder: Path, *, seed: int, seconds: float) -> None:
        self._folder, self._seed, self._seconds = folder, seed, seconds
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self._deeds: Counter[str] = Counter()
        self._problems: list[str] = []

    def run(self) -> Result:
        with ExitStack() as stack:
            log = stack.enter_context((self._folder / "history.jsonl").open("w"))
            self._recorder = Recorder(log)
            self._server = Server(self._folder / SERVER)
            stack.callback(self._server.kill)
            self._machines = [self._machine(name, stack) for name in MACHINES]
            self._workers = [
                Worker(machine, self._recorder, self._stop, seed=self._rng.randrange(1 << 60),
                       others=[other for other in MACHINES if other != machine.name])
                for machine in self._machines
            ]  # fmt: skip
            network = Proxy(self._server.address, seed=self._rng.randrange(1 << 60), weather=ROUGH)
            stack.callback(network.close)
            api_client = stack.enter_context(self._server.client(network.url))
            api = ApiClient(api_client, self._recorder, self._stop, seed=self._rng.randrange(1 << 60))
            with self._working([api.run]):
                self._go_wrong(network)
            network.heal()
            result = Result(seed=self._seed, history=self._recorder.history, findings=[], deeds=self._deeds)
            result.complaints = [*self._problems, *self._settle()]
            for proxy in (network, *(machine.proxy for machine in self._machines)):
                result.faults.update(proxy.faults)
            self._gather(result)
            self._close(result)
        result.findings = check(result.history)
        return result

    def _machine(self, name: str, stack: ExitStack) -> Machine:
        machine = Machine(self._folder / name, name, self._server, seed=self._rng.randrange(1 << 60))
        stack.callback(machine.close)
        _make_archive(machine.memdir.folder / "tree.tar", random.Random(f"{self._seed} {name}"))
        machine.mount()
        machine.proxy.weather = ROUGH
        return machine

    # --- while it goes on ------------------------------------------------------------------------------------------

    @contextmanager
    def _working(self, more: list[Callable[[], None]]) -> Iterator[None]:
        jobs = [job for worker in self._workers for job in (worker.run, worker.look_around)] + more
        threads = [threading.Thread(target=self._guarded, args=(job,), daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(_JOIN_S)
                if thread.is_alive():
                    self._problems.append("somebody hangs in the mount")

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001  a problem of the run, reported with it
            self._problems.append(f"{getattr(job, '__qualname__', job)}: {error!r}")

    def _go_wrong(self, network: Proxy) -> None:
        """Each of the deeds once, then any of them until the time is over."""
        end_s = time.monotonic() + self._seconds
        deeds = [self._kill_daemon, self._kill_server, self._cut_network]
        waiting = list(deeds)
        while waiting or time.monotonic() < end_s:
            self._stop.wait(self._rng.uniform(1.0, 4.0))
            deed = waiting.pop(0) if waiting else self._rng.choice([*deeds, self._kill_daemon])
            self._recorder.say(deed.__name__)
            deed(network)

    def _kill_daemon(self, _: Proxy) -> None:
        at = self._rng.randrange(len(self._machines))
        machine = self._machines[at]
        machine.kill()
        self._stop.wait(self._rng.uniform(0.0, 1.5))
        machine.mount()
        with machine.used(0):
            self._workers[at].look_at_own()
        self._deeds["daemon killed"] += 1

    def _kill_server(self, _: Proxy) -> None:
        self._server.kill()
        self._stop.wait(self._rng.uniform(0.0, 1.5))
        self._server.start()
        self._deeds["server killed"] += 1

    def _cut_network(self, network: Proxy) -> None:
        proxies = self._rng.sample([network, *(machine.proxy for machine in self._machines)], self._rng.randrange(1, 4))
        for proxy in proxies:
            proxy.cut()
        self._stop.wait(self._rng.uniform(0.5, 4.0))
        for proxy in proxies:
            proxy.join_again()
        self._deeds["network cut"] += 1

    # --- afterwards ------------------------------------------------------------------------------------------------

    def _settle(self) -> list[str]:
        """Let everything come to rest: nothing waits anywhere, and all see what the server has."""
        for machine in self._machines:
            machine.proxy.heal()
        deadline_s = time.monotonic() + _SETTLE_S
        waits = ["nobody was asked"]
        while waits and time.monotonic() < deadline_s:
            waits = [*self._waiting(), *([] if time.monotonic() > deadline_s else self._unequal())]
            if waits:
                threading.Event().wait(_LOOK_S)
        return [f"not at rest after {_SETTLE_S:g} s: {wait}" for wait in waits]

    def _waiting(self) -> list[str]:
        found = []
        for machine in self._machines:
            try:
                machine.call("sync", wait=False, timeout_s=0.0)
                status = machine.call("status")
            except MemdirError as error:
                found.append(f"{machine.name}: {error.message}")
                continue
            wrong = {key: status[key] for key in ("queue_length", "parked", "held_deletions", "trouble") if status[key]}
            if not status["server"]["online"]:
                wrong["server"] = status["server"]["error"]
            if wrong:
                found.append(f"{machine.name}: {wrong} {machine.call('queue', limit=5)['rows']}")
        return found

    def _unequal(self) -> list[str]:
        """The names only: reading everything is left for the end."""
        with self._server.client() as client:
            names, after = set(), None
            while True:
                page = client.list_files(CONTAINER, after=after)
                names |= {entry.path for entry in page.entries}
                after = page.next_after
                if after is None:
                    break
        found = []
        for machine in self._machines:
            different = (names ^ machine.names().keys()) - {IGNORE_FILE}
            if different:
                found.append(f"{machine.name} and the server differ in {sorted(different)[:5]}")
        return found

    def _gather(self, result: Result) -> None:
        """The end of the history: what stands where, and what the server did."""
        history = result.history
        with self._server.client() as client:
            since, more = 0, True
            while more:
                page = client.changes(CONTAINER, since=since)
                for change in page.changes:
                    found = change.entry.content_hash if change.entry is not None and change.entry.kind != "dir" else None
                    step = Step(seq=change.seq, kind=change.kind, path=change.path, source=change.from_path or "", found=found)
                    history.steps += [step] if change.path != IGNORE_FILE else []
                since, more = page.changes[-1].seq if page.changes else since, page.has_more
            history.finals[SERVER], history.folders[SERVER], logs = server_tree(client)
        history.lines = {path: content.decode(errors="replace").splitlines() for path, content in logs.items()}
        for machine in self._machines:
            try:
                history.finals[machine.name], history.folders[machine.name] = machine.tree()
            except OSError as error:
                result.complaints.append(f"{machine.name} cannot be read: {error}")
            result.complaints += [f"{machine.name}: {line}" for line in machine.complaints()]
        for worker in self._workers:
            for made in worker.made:
                result.complaints += [f"{other.name}: {wrong}" for other in self._machines for wrong in _judge(other, *made)]

    def _close(self, result: Result) -> None:
        """In order; everything on the disks has to be right."""
        for machine in self._machines:
            try:
                said = machine.unmount()
                if "everything is pushed" not in said:
                    result.complaints.append(f"{machine.name}: {said}")
                machine.memdir.run("fsck", "--json", limit_s=120)
            except AssertionError as error:
                result.complaints.append(f"{machine.name}: {error}")
        try:
            self._server.close()
            self._server.memdir.run("server", "check", limit_s=120)
        except (AssertionError, ClientError) as error:
            result.complaints.append(f"server: {error}")


def _make_archive(file: Path, rng: random.Random) -> None:
    """A tree for tar, and beside it the same unpacked on an ordinary disk."""
    top = file.with_suffix("")
    for number in range(15):
        path = top / f"part-{number % 3}" / f"file-{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(rng.choice((0, 10, 2000, 40_000))))
    (top / "part-0" / "link").symlink_to("file-0")
    with tarfile.open(file, "w") as archive:
        for path in sorted(top.iterdir()):
            archive.add(path, arcname=path.name)


def _judge(machine: Machine, what: str, folder: str) -> list[str]:
    """Whether a tree that a program made somewhere is right at this machine."""
    place = f"{machine.place}{folder}"
    owner = folder.split("/")[1].removeprefix("bulk-")
    original = machine.memdir.folder.parent / owner / "tree"
    command = ["diff", "-r", "--no-dereference", str(original), place]
    if what == "git":
        command = ["git", "-c", "safe.directory=*", "-C", place, "fsck", "--strict", "--no-dangling"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if not done.returncode and what == "git":
        command = ["git", "--no-optional-locks", "-c", "safe.directory=*", "-C", place, "status", "--porcelain"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return [f"{folder}: git status: {done.stdout}{done.stderr}"] if done.returncode or done.stdout else []
    return [f"{folder}: {what}: {(done.stdout + done.stderr)[-500:]}"] if done.returncode else []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.checker.run", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--folder", type=Path, required=True, help="must not exist")
    args = parser.parse_args()
    args.folder.mkdir(parents=True)
    result = Run(args.folder.resolve(), seed=args.seed, seconds=args.seconds).run()
    sys.stdout.write(result.report() + "\n")
    return 1 if result.findings or result.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
