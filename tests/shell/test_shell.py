"""The in-process shell over a memory: the server's files, the search by meaning, bounds, cancelling, and what it needs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.client.local import ensure_server, stop_server
from memdir.core.errors import BusyError, UsageError
from memdir.core.paths import AppPaths, under_home
from memdir.fs.errors import ContentsAbsentError, FsError
from memdir.fs.memory import MemoryFs
from memdir.shell import Shell, ShellLimits, ShellMissingError
from memdir.shell.commands.call import Call
from memdir.shell.files import FILE_MAX_BYTES, Files
from memdir.shell.tool import anthropic_tool, openai_tool, told

WAIT_S = 30.0
PAUSE = threading.Event()
"""Never set: waits on it end after their time."""


@pytest.fixture
def files() -> Files:
    return Files(MemoryFs(sync=False))


@pytest.fixture
def shell(files: Files) -> Iterator[Shell]:
    with Shell.over(files, name="notes", limits=ShellLimits(timeout_s=20)) as shell:
        yield shell


@pytest.fixture(scope="module")
def home() -> Iterator[AppPaths]:
    """A home with a memory server that runs."""
    with tempfile.TemporaryDirectory(prefix="md-") as folder, pytest.MonkeyPatch.context() as patch:
        paths = under_home(Path(folder))
        patch.setenv("MEMDIR_HOME", folder)
        ensure_server(paths)
        yield paths
        stop_server(paths)


def until(shell: Shell, script: str, wanted: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while (found := shell.run_sync(script).stdout) != wanted:
        assert time.monotonic() < deadline_s, found
        PAUSE.wait(0.05)


def test_the_memory_is_the_working_directory_and_state_lasts(shell: Shell, files: Files) -> None:
    done = shell.run_sync("pwd; mkdir -p work; cd work; x=5; f() { echo \"f $1\"; }; echo 'one' > a.md")
    assert (done.stdout, done.stderr, done.exit_code, done.truncated) == ("/notes\n", "", 0, False)
    assert shell.cwd == "/notes/work"
    assert shell.run_sync("echo $x; f y; cat a.md; exit 3").stdout == "5\nf y\none\n"
    assert files.read("/work/a.md") == b"one\n"
    assert shell.run_sync("false").exit_code == 1


def test_what_is_outside_the_memory_is_no_file_of_this_machine(shell: Shell, files: Files, tmp_path: Path) -> None:
    done = shell.run_sync(
        f"echo scratch > /tmp/x; cat /tmp/x; cat {tmp_path}/y; ls {tmp_path}; cp /tmp/x /notes/kept; mv kept /tmp/z; ls"
    )
    assert done.stdout == "scratch\n"
    assert "No such file" in done.stderr
    assert files.entries("/") == []


@pytest.mark.promise("shell.whole-files")
def test_cancelling_ends_a_script_and_leaves_no_half_written_file(shell: Shell, files: Files) -> None:
    async def cancelled() -> None:
        script = "i=0; while :; do i=$((i+1)); printf 'all %s of it\\n' $i $i $i > f; done"
        task = asyncio.create_task(shell.run(script))
        while not files.exists("/f") or not files.stat("/f").size:
            await asyncio.to_thread(PAUSE.wait, 0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert shell.run_sync("sort f | uniq -c | awk '{print $1}'").stdout == "3\n"
    assert asyncio.run(shell.run("echo usable")).stdout == "usable\n"


def test_cancelling_a_script_that_waits_its_turn_does_not_end_the_one_that_runs(shell: Shell, files: Files) -> None:
    async def work() -> str:
        first = asyncio.create_task(shell.run("echo begun > begun; sleep 0.5; echo first"))
        while not files.exists("/begun"):
            await asyncio.to_thread(PAUSE.wait, 0.01)
        second = asyncio.create_task(shell.run("echo second > second"))
        await asyncio.to_thread(PAUSE.wait, 0.01)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        return (await first).stdout

    assert asyncio.run(work()) == "first\n"
    assert shell.run_sync("ls").stdout == "begun\n"


@pytest.mark.promise("shell.bounded")
def test_bounds_end_a_script_and_say_so(files: Files) -> None:
    limits = ShellLimits(timeout_s=0.5, commands=500, loop_iterations=200)
    with Shell.over(files, limits=limits) as shell:
        late = shell.run_sync("echo begun; sleep 60 & wait")
        assert (late.stdout, late.exit_code) == ("begun\n", 124)
        assert "timeout" in late.stderr
        assert "loop" in shell.run_sync("for ((i=0;i<1000;i++)); do :; done").stderr
        assert "limit" in shell.run_sync("f() { for i in 1 2 3 4 5 6 7 8 9; do :; done; }; " + "f; " * 100).stderr
        assert shell.run_sync("echo on").stdout == "on\n"
    with Shell.over(files) as shell:
        long = shell.run_sync("seq 1 100000; seq 1 100000; seq 1 100000")
        assert long.truncated
        assert len(long.stdout) <= 1 << 20
        with pytest.raises(UsageError, match="1 MiB"):
            shell.run_sync("#" * (1 << 21))
        with pytest.raises(UsageError, match="NUL"):
            shell.run_sync("a\0b")
        files.write("/big", b"x" * FILE_MAX_BYTES)
        assert shell.run_sync("cat big >> big").exit_code != 0
        assert files.stat("/big").size == FILE_MAX_BYTES


def test_memory_that_a_script_takes_is_bounded(files: Files) -> None:
    with Shell.over(files, limits=ShellLimits(memory_bytes=64 << 20)) as shell:
        done = shell.run_sync("eval " * 3000 + "echo x")
        assert (done.stdout, done.exit_code) == ("", 1)
        assert "64 MiB of memory" in done.stderr
        assert shell.run_sync("echo on").stdout == "on\n"


def test_hundreds_of_scripts_do_not_use_a_shell_up(shell: Shell) -> None:
    for _ in range(300):
        assert shell.run_sync("for i in {1..400}; do :; done").exit_code == 0


def test_scripts_of_several_threads_take_turns(shell: Shell) -> None:
    threads = [threading.Thread(target=shell.run_sync, args=(f"for i in 1 2 3; do echo {n} >> log; done",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shell.run_sync("uniq -c log | awk '{print $1}' | sort -u").stdout == "3\n"


def test_errors_of_the_filesystem_reach_the_script(shell: Shell, files: Files) -> None:
    class Full(MemoryFs):
        def write(self, ino: int, offset: int, data: object) -> int:
            raise FsError(28)

    with Shell.over(Files(Full(sync=False))) as full:
        done = full.run_sync("echo x > f && echo wrote; echo $?; touch g; ls")
        assert "wrote" not in done.stdout
        assert "No space left" in done.stderr
    done = shell.run_sync(f"mkdir {'n' * 300}; echo x > {'n' * 300}; echo $?; mkdir d; echo > d; rmdir d; rmdir d; echo $?")
    assert done.stdout == "1\n1\n"


def test_names_that_are_no_text_stay_and_are_not_shown(files: Files) -> None:
    vfs = MemoryFs(sync=False)
    with Shell.over(Files(vfs)) as shell:
        shell.run_sync("echo a > plain")
        vfs.rename(1, b"plain", 1, b"\xff\xfe")
        assert shell.run_sync("ls; find . -type f; rm -rf *").stdout == ""
        assert vfs.find(1, b"\xff\xfe") is not None


def test_absent_contents_are_fetched_and_waited_for() -> None:
    class Absent(MemoryFs):
        here = False

        def read(self, ino: int, offset: int, size: int) -> object:
            if not self.here:
                raise ContentsAbsentError(ino)
            return super().read(ino, offset, size)

    class Source:
        def bring(self, _ino: int, brought: object) -> None:
            vfs.here = works
            threading.Timer(0.05, brought, [None if works else FsError(5, "the server is away")]).start()  # type: ignore[arg-type]

        def arrived_bytes(self, _ino: int) -> int:
            return 0

    for works in (True, False):
        vfs = Absent(sync=False)
        found = Files(vfs, contents=Source())  # type: ignore[arg-type]
        found.write("/a", b"text\n")
        with Shell.over(found) as shell:
            done = shell.run_sync("cat a; echo $?")
            assert done.stdout == ("text\n0\n" if works else "1\n")
            assert works or "the server is away" in done.stderr


def test_more_commands_can_be_given_and_curl_is_off(files: Files, tmp_path: Path) -> None:
    def greet(call: Call) -> None:
        call.say(f"hello {' '.join(call.args)} {call.stdin.strip()}")

    with Shell(directory=tmp_path / "store", commands={"greet": greet}) as shell:
        assert shell.run_sync("echo in | greet you | tr a-z A-Z").stdout == "HELLO YOU IN\n"
        done = shell.run_sync("curl -s http://127.0.0.1:1/; python -c 'print(1)'")
        assert done.exit_code == 127
        assert "network access not configured" in done.stderr


@pytest.mark.promise("shell.memory")
def test_two_shells_of_one_memory_see_each_other_and_search_by_meaning(home: AppPaths) -> None:
    with Shell("notes") as one, Shell("notes") as two:
        assert one.trouble is None
        one.run_sync("mkdir work; echo 'The refresh token fails after the clock skew exceeds five minutes.' > work/auth.md")
        one.run_sync("echo 'We left the supplier because its invoices came late.' > work/suppliers.md")
        until(two, "cat work/auth.md", "The refresh token fails after the clock skew exceeds five minutes.\n")
        asked = "cd /notes/work && memdir grep -k 1 'reason for changing the vendor'"
        until(two, asked, "suppliers.md:1:We left the supplier because its invoices came late.\n")
        found = two.run_sync("memdir grep -F skew .; memdir grep zqx; echo $?")
        assert "auth.md:1:The refresh token" in found.stdout
        assert found.stdout.endswith("1\n")
        assert two.run_sync("cat ../profile.md | head -1; echo x > ../profile.md").stderr.count("Read-only") == 1
        two.run_sync("mv auth.md renamed.md; rm suppliers.md")
        until(one, "ls work", "renamed.md\n")
        refused = one.run_sync("memdir grep skew --containing '->'")
        assert (refused.exit_code, "cannot look for lines that contain '->'" in refused.stderr) == (2, True)
        assert "usage: memdir grep" in one.run_sync("memdir grep; memdir mount x; memdir grep a /tmp").stderr


def test_what_is_written_without_a_server_is_pushed_by_the_next_shell(home: AppPaths) -> None:
    with Shell("later", server="http://127.0.0.1:9", api_key="md_nobody", wait_s=1) as offline:
        assert offline.trouble
        assert offline.run_sync("echo kept > note.md; cat note.md").stdout == "kept\n"
        assert offline.close(0.1)
    with Shell("later") as online:
        until(online, "cat note.md", "kept\n")
        assert online.close() == 0
    with Shell("later") as again:
        assert again.run_sync("cat note.md").stdout == "kept\n"


def test_a_directory_is_a_store_without_a_server_that_one_process_holds(tmp_path: Path) -> None:
    with Shell(directory=tmp_path / "s") as shell:
        shell.run_sync("echo kept > a; chmod 600 a; ln -s a l")
        with pytest.raises(BusyError):
            Shell(directory=tmp_path / "s")
        assert shell.run_sync("memdir grep -F kept").stdout == "a:1:kept\n"
    with Shell(directory=tmp_path / "s", read_only=True) as shell:
        assert shell.run_sync("cat l; stat -c %a a").stdout == "kept\n600\n"
        assert "Read-only" in shell.run_sync("echo x > a").stderr


def test_a_folder_with_files_in_it_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("mine")
    tmp_path.chmod(0o755)
    for folder in (tmp_path, tmp_path / "a.md"):
        with pytest.raises(UsageError, match=r"files in it|Not a directory"):
            Shell(directory=folder)
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_folder_of_one_container_is_refused_to_another(tmp_path: Path) -> None:
    nowhere = {"server": "http://127.0.0.1:9", "api_key": "md_nobody", "wait_s": 0.1}
    with Shell("one", directory=tmp_path / "s", **nowhere) as shell:  # type: ignore[arg-type]
        shell.run_sync("echo of one > a")
        shell.close(0.1)
    with pytest.raises(UsageError, match="holds files of 'one'"):
        Shell("two", directory=tmp_path / "s", **nowhere)  # type: ignore[arg-type]
    with Shell("one", directory=tmp_path / "s", **nowhere) as shell:  # type: ignore[arg-type]
        assert shell.run_sync("cat a").stdout == "of one\n"
        shell.close(0.1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "needs a container"), ({"container": "a/b"}, "name of a folder"),
        ({"container": "a", "server": "http://x"}, "go together"),
        ({"directory": "d", "server": "http://x", "api_key": "k"}, "have a container"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Shell(**arguments)  # type: ignore[arg-type]


def test_a_memory_that_is_called_like_a_folder_of_the_system_stands_beside_it(tmp_path: Path, files: Files) -> None:
    with Shell.over(files, name="tmp") as shell:
        assert shell.run_sync("pwd; echo x > /tmp/y; ls").stdout == "/tmp-memory\n"


def test_without_the_interpreter_it_says_what_to_install(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdir.shell.interpreter.importlib.util.find_spec", lambda _: None)
    with pytest.raises(ShellMissingError) as caught:
        Shell.over(files)
    assert "memdir[shell]" in (caught.value.hint or "")


def test_importing_the_shell_imports_neither_server_nor_interpreter() -> None:
    code = "import sys; from memdir.shell import Shell; print(sorted({'bashkit', 'httpx', 'pydantic'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_tool_for_models_has_a_schema_for_each_and_says_what_was_cut(shell: Shell) -> None:
    openai, anthropic = openai_tool("notes"), anthropic_tool("notes")
    assert openai["function"]["parameters"] == anthropic["input_schema"]
    assert openai["function"]["name"] == anthropic["name"] == "bash"
    assert "/notes" in anthropic["description"]
    assert told(shell.run_sync("echo a; echo b >&2; exit 4")) == "a\nb\n[exit code 4]"
    assert told(shell.run_sync(":")) == "[no output]"
    cut = told(shell.run_sync("seq 1 5000"), max_chars=1000)
    assert cut.startswith("1\n2\n")
    assert cut.endswith("5000")
    assert "left out here; to see more, write the output to a file" in cut
    assert len(cut) < 1400


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        ("echo a > a; ln -f a a; cat a", "a\n"), ("echo a > a; ln -sf a a; cat a", "a\n"),
        ("echo b > b; ln -f nosuch b; cat b", "b\n"), ("echo y > y; echo x > /tmp/x; cp -l /tmp/x y; cat y", "y\n"),
        ("mkdir -p /tmp/d d/f; echo x > /tmp/d/f; mv nosuch /tmp/d .; cat /tmp/d/f; ls d", "x\nf\n"),
    ],
)  # fmt: skip
def test_what_cannot_be_replaced_or_moved_stays(shell: Shell, script: str, kept: str) -> None:
    done = shell.run_sync(script)
    assert done.stdout == kept
    assert done.stderr
    assert shell.run_sync("ls -A | grep -c link").stdout == "0\n"


def test_links_are_replaced(shell: Shell) -> None:
    script = "echo a > a; echo b > b; ln a c; ln -f a c; ln -f a b; ln -sf nosuch l; ln -sf a l; cat b; readlink l; ls -A"
    assert shell.run_sync(script).stdout == "a\na\na\nb\nc\nl\n"


def test_unfinished_lines_are_known(shell: Shell) -> None:
    for text in ("for i in 1; do\n", "echo 'a\n", "cat <<E\nx\n", "a &&\n", "f() {\n", "echo $(ls\n", "ls \\\n"):
        assert not shell.is_complete(text), text
    for text in ("echo a\n", "for i in 1; do\n:; done\n", "cat <<E\nx\nE\n", "done\n", "cat <<< x\n"):
        assert shell.is_complete(text), text
