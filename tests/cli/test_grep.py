"""`memdir grep` against a fake daemon: scopes, paths, output, exit codes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memdir.cli import output
from memdir.core.errors import UsageError
from tests.cli.fakes import FakeMount, found, hit

Run = Callable[..., tuple[int, str, str]]
Mounts = Callable[..., FakeMount]


def sent(mount: FakeMount) -> dict[str, Any]:
    assert [op for op, _ in mount.calls] == ["grep"]
    return mount.calls[0][1]


def test_hits_are_lines_best_first(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/b.md", line=12, text="second  best\n is first"), hit("/a/c.md", line=3, last=5, text="next")))
    code, out, err = run("grep", "a question", "notes")
    assert (code, err) == (0, "")
    assert out == "notes/b.md:12:second best is first\nnotes/a/c.md:3-5:next\n"


def test_nothing_found_is_exit_code_1(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found())
    assert run("grep", "a question") == (1, "", "")


def test_json_is_one_array_with_the_documented_fields(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/b.md", line=2, last=4, text="x\n\ty")))
    code, out, _ = run("grep", "--json", "a question", "notes")
    assert code == 0
    assert json.loads(out) == [
        {
            "path": "notes/b.md",
            "start_line": 2,
            "end_line": 4,
            "text": "x\n\ty",
            "score": 0.5,
            "kind": "chunk",
            "document_id": "D1",
        }
    ]


def test_json_with_nothing_found_is_an_empty_array(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found())
    assert run("grep", "--json", "a question") == (1, "[]\n", "")


def test_without_a_path_the_only_mount_is_searched_whole(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/b.md")))
    code, out, _ = run("grep", "a question")
    assert code == 0
    assert sent(mount)["paths"] == ["/"]
    assert out == f"{mount.path}/b.md:1:text\n"


def test_inside_the_mount_paths_are_relative_to_where_one_stands(
    run: Run, fake_mount: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = fake_mount(grep=found(hit("/work/deep/a.md"), hit("/b.md")))
    (mount.path / "work").mkdir()
    monkeypatch.chdir(mount.path / "work")
    code, out, _ = run("grep", "a question")
    assert code == 0
    assert sent(mount)["paths"] == ["/"]
    assert out == "deep/a.md:1:text\n../b.md:1:text\n"


def test_inside_the_mount_a_dot_means_this_folder_only(run: Run, fake_mount: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    mount = fake_mount(grep=found(hit("/work/a.md")))
    (mount.path / "work").mkdir()
    monkeypatch.chdir(mount.path / "work")
    assert run("grep", "a question", ".")[1] == "a.md:1:text\n"
    assert sent(mount)["paths"] == ["/work"]


@pytest.mark.parametrize(
    ("given", "scope", "shown"),
    [
        ("notes", "/", "notes/work/a.md"),
        ("notes/", "/", "notes/work/a.md"),
        ("./notes/work", "/work", "./notes/work/a.md"),
        ("notes/work/a.md", "/work/a.md", "notes/work/a.md"),
        ("notes/x/../work", "/work", "notes/x/../work/a.md"),
    ],
)
def test_outside_the_mount_paths_are_shown_as_they_were_given(
    given: str, scope: str, shown: str, run: Run, fake_mount: Mounts
) -> None:
    mount = fake_mount(grep=found(hit("/work/a.md")))
    assert run("grep", "a question", given)[1] == f"{shown}:1:text\n"
    assert sent(mount)["paths"] == [scope]


def test_the_text_beside_a_file_is_shown_beside_what_was_typed(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/work/scan.pdf.pdf-transcription.md")))
    assert run("grep", "a question", "notes/work/scan.pdf")[1] == "notes/work/scan.pdf.pdf-transcription.md:1:text\n"


def test_an_absolute_path_works_from_anywhere(run: Run, fake_mount: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    mount = fake_mount(grep=found(hit("/work/a.md")))
    monkeypatch.chdir("/")
    assert run("grep", "a question", f"{mount.path}/work")[1] == f"{mount.path}/work/a.md:1:text\n"


def test_a_link_from_outside_leads_into_the_mount(run: Run, fake_mount: Mounts, tmp_path: Path) -> None:
    mount = fake_mount(grep=found(hit("/work/a.md")))
    (tmp_path / "shortcut").symlink_to(mount.path / "work")
    assert run("grep", "a question", "shortcut")[1] == "shortcut/a.md:1:text\n"
    assert sent(mount)["paths"] == ["/work"]


def test_a_link_inside_the_mount_is_followed_when_nothing_is_found_at_it(run: Run, fake_mount: Mounts) -> None:
    def grep(args: dict[str, Any]) -> dict[str, Any]:
        return found(hit("/work/a.md"))(args) if args["paths"] == ["/work"] else found(unresolved=["/now"])(args)

    mount = fake_mount(grep=grep)
    (mount.path / "work").mkdir()
    (mount.path / "now").symlink_to("work")
    assert run("grep", "a question", "notes/now")[1] == "notes/now/a.md:1:text\n"


def test_a_path_that_does_not_exist_is_an_error_and_not_an_empty_result(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(unresolved=["/tpyo"]))
    code, out, err = run("grep", "a question", "notes/tpyo")
    assert (code, out) == (2, "")
    assert "notes/tpyo: no such file or folder" in err


def test_a_path_outside_any_mount_says_what_to_do(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/a.md")))
    code, out, err = run("grep", "a question", "/usr")
    assert (code, out) == (2, "")
    assert "/usr is not inside a mounted memory" in err
    assert "--container NAME" in err
    assert str(mount.path) in err
    assert mount.calls == []


def test_without_any_mount_the_hint_is_to_mount_one(run: Run) -> None:
    code, _, err = run("grep", "a question")
    assert code == 2
    assert "memdir mount NAME" in err


def test_two_mounts_and_no_path_lists_them(run: Run, fake_mount: Mounts) -> None:
    first, second = fake_mount("notes", grep=found()), fake_mount("work", grep=found())
    code, _, err = run("grep", "a question")
    assert code == 2
    assert str(first.path) in err
    assert str(second.path) in err


def test_a_dead_mount_says_how_to_bring_it_back(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found())
    mount.die()
    code, _, err = run("grep", "a question", "notes")
    assert code == 2
    assert "memdir mount notes" in err


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query_is_an_error(query: str, run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/a.md")))
    code, out, err = run("grep", query)
    assert (code, out) == (2, "")
    assert "empty" in err
    assert mount.calls == []


@pytest.mark.parametrize("mode", ["literal", "regex"])
def test_whitespace_is_an_exact_query(mode: str, run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/a.md", kind=mode)))
    assert run("grep", f"--{mode}", "\t")[0] == 0
    assert (sent(mount)["q"], sent(mount)["mode"]) == ("\t", mode)


def test_a_query_that_is_too_long_is_an_error(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/a.md")))
    assert run("grep", "x" * 4096)[0] == 0
    assert run("grep", "x" * 4097)[0] == 2


def test_raw_bytes_are_a_literal_query_only(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/a.md")))
    assert run("grep", "caf\udce9")[0] == 2
    assert run("grep", "--literal", "caf\udce9")[0] == 0
    assert sent(mount)["q"] == "caf\udce9"


@pytest.mark.parametrize(("given", "code"), [("1", 0), ("200", 0), ("0", 2), ("201", 2), ("-3", 2), ("ten", 2)])
def test_k_is_1_to_200(given: str, code: int, run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/a.md")))
    assert run("grep", "-k", given, "a question")[0] == code
    assert not mount.calls or sent(mount)["limit"] == int(given)


def test_no_wait_does_not_wait(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/a.md")))
    run("grep", "--no-wait", "a question")
    run("grep", "a question")
    assert [args["wait_ms"] for _, args in mount.calls] == [0, 2500]


def test_what_could_not_be_waited_for_is_said_once_on_standard_error(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/a.md", kind="pending"), pending=["/a.md", "/b.md"]))
    code, out, err = run("grep", "a question", "notes")
    assert (code, out) == (0, "notes/a.md:1:text\n")
    assert err == "memdir: 2 files are not searchable by meaning yet and were searched by words only\n"


def test_the_daemon_s_own_note_is_passed_on(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/a.md"), offline=True, note="the server is offline: searched by words only"))
    assert run("grep", "a question")[2] == "memdir: the server is offline: searched by words only\n"


def test_a_full_literal_result_says_that_there_may_be_more(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/a.md", kind="literal")))
    assert "first 1 matches" in run("grep", "--literal", "-k", "1", "x")[2]
    assert run("grep", "--literal", "x")[2] == ""


def test_explain_shows_the_signals(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/a.md", signals={"lexical": 0.25, "dense": 0.75})))
    out = run("grep", "--explain", "a question", "notes")[1]
    assert "score=0.500 dense=0.750 lexical=0.250" in out
    assert json.loads(run("grep", "--explain", "--json", "a question")[1])[0]["signals"] == {"lexical": 0.25, "dense": 0.75}


def test_a_file_cannot_steer_the_terminal(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/evil\x1b]0;title\x07.md", text="\x1b[2J\x9b31mred\u202e \r\nline")))
    out = run("grep", "a question", "notes")[1]
    assert out == "notes/evil\\x1b]0;title\\x07.md:1:\\x1b[2J\\x9b31mred\\u202e line\n"
    as_json = run("grep", "--json", "a question", "notes")[1]
    assert "\x1b" not in as_json
    assert json.loads(as_json)[0]["text"] == "\x1b[2J\x9b31mred\u202e \r\nline"


def test_a_name_that_is_not_utf8_reaches_a_program_byte_for_byte(
    fake_mount: Mounts, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    from memdir.cli.main import main

    fake_mount(grep=found(hit("/caf\udce9.md")))
    assert main(["grep", "a question", "notes"]) == 0
    assert capfdbinary.readouterr().out == b"notes/caf\xe9.md:1:text\n"


def test_on_a_terminal_there_are_colours_and_long_lines_are_cut(
    run: Run, fake_mount: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_mount(grep=found(hit("/a.md", text="word " * 200)))
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setenv("TERM", "xterm")
    out = run("grep", "a question", "notes")[1]
    assert out.startswith("\x1b[35mnotes/a.md\x1b[0m:\x1b[32m1\x1b[0m:word word")
    assert out.endswith("…\n")
    assert len(out) < 320
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("grep", "a question", "notes")[1]


def test_the_daemon_s_error_is_shown_with_its_hint(run: Run, fake_mount: Mounts) -> None:
    def refuse(args: dict[str, Any]) -> dict[str, Any]:
        raise UsageError("the index is gone", hint="rebuild it")

    fake_mount(grep=refuse)
    assert run("grep", "a question") == (2, "", "memdir: the index is gone\n  hint: rebuild it\n")
    assert json.loads(run("grep", "a question", "--json")[1]) == {"error": "the index is gone", "hint": "rebuild it"}


def test_a_deleted_working_directory_is_explained(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    os.rmdir(gone)
    code, _, err = run("grep", "a question", "x")
    assert code == 2
    assert "current directory" in err


def test_a_container_s_name_is_checked(run: Run) -> None:
    code, _, err = run("grep", "--container", "a/b", "a question")
    assert code == 2
    assert "'/'" in err


def test_lines_around_a_hit_are_printed_as_grep_prints_them(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(
        grep=found(
            hit("/b.md", line=2, last=4, text="before\nthe hit\nafter", matched=[[3, 3]]),
            hit("/c.md", line=1, last=1, text="alone", matched=[[1, 1]]),
        )
    )
    code, out, err = run("grep", "-C", "1", "a question", "notes")
    assert (code, err) == (0, "")
    assert out == "notes/b.md-2-before\nnotes/b.md:3:the hit\nnotes/b.md-4-after\n--\nnotes/c.md:1:alone\n"
    assert sent(mount)["context"] == 1


def test_a_budget_says_what_it_left_out(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/b.md"), tokens=180, left_out={"count": 7, "paths": ["/x.md", "/y.md"]}))
    _, out, err = run("grep", "--budget", "200", "a question", "notes")
    assert out == "notes/b.md:1:text\n"
    assert err == "memdir: about 180 tokens; 7 hits did not fit the budget, in /x.md, /y.md\n"
    assert sent(mount)["budget_tokens"] == 200


def test_a_threshold_goes_along_and_has_to_be_one(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found())
    assert run("grep", "--threshold", "0.4", "a question")[0] == 1
    assert sent(mount)["threshold"] == 0.4
    assert run("grep", "--threshold", "nan", "a question")[0] == 2


def test_what_a_line_has_to_contain_goes_along(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/b.md", text="Ana Ruiz came in May.")))
    code, out, _ = run("grep", "when did she come", "notes", "--containing", "Ana Ruiz", "--containing=May")
    assert (code, out) == (0, "notes/b.md:1:Ana Ruiz came in May.\n")
    assert sent(mount)["containing"] == ["Ana Ruiz", "May"]


def test_a_regular_expression_and_its_options(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/b.md", kind="literal"), hit("/b.md", line=2, kind="literal"), binary=["/x.bin"]))
    code, out, err = run("grep", "-E", "-i", "-w", "a+b", "notes")
    assert (code, out) == (0, "notes/b.md:1:text\nnotes/b.md:2:text\n")
    assert err == "memdir: notes/x.bin: binary file matches\n"
    asked = sent(mount)
    assert (asked["mode"], asked["ignore_case"], asked["whole_words"]) == ("regex", True, True)


def test_only_the_names_of_files(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/b.md"), hit("/b.md", line=2), hit("/c.md"), binary=["/x.bin"]))
    assert run("grep", "-F", "-l", "text", "notes") == (0, "notes/b.md\nnotes/c.md\nnotes/x.bin\n", "")
    assert json.loads(run("grep", "-F", "-l", "--json", "text", "notes")[1]) == ["notes/b.md", "notes/c.md", "notes/x.bin"]


@pytest.mark.parametrize(
    "options",
    [
        ["-i"], ["-w"], ["-l"], ["-v"], ["-o"], ["-c"], ["-m", "1"], ["-A", "1"], ["-e", "a", "-e", "b"], ["-k", "201"],
        ["-E", "--budget", "9"], ["-F", "--threshold", ".1"], ["-F", "--rerank"], ["-E", "-F"], ["-F", "-o", "-C", "1"],
        ["-F", "--containing", "a"], ["--containing", "->"], ["--containing", "a" * 201], ["--containing", "a"] * 9,
    ],
)  # fmt: skip
def test_options_that_mean_nothing_together_are_refused(options: list[str], run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(grep=found(hit("/b.md")))
    code, out, err = run("grep", *options, "text")
    assert (code, out) == (2, "")
    assert "hint: " in err
    assert mount.calls == []


def test_a_generated_memory_has_a_mark(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/b.md", line=3, kind="memory", text="likes tea")))
    assert run("grep", "tea", "notes")[1] == "notes/b.md:3:[memory] likes tea\n"


@pytest.mark.promise("retrieval.explain")
def test_explain_says_where_the_time_went(run: Run, fake_mount: Mounts) -> None:
    fake_mount(grep=found(hit("/b.md", signals={"dense": 0.5}), stages_ms={"lexical": 1.25, "dense": 2.0}, timing_ms=4.0))
    _, out, err = run("grep", "--explain", "tea", "notes")
    assert out == "notes/b.md:1:text\n    chunk score=0.500 dense=0.500\n"
    assert err == "memdir: took 4.0 ms, of these: lexical 1.2, dense 2.0\n"


def test_words_are_marked_on_a_terminal_only(run: Run, fake_mount: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_mount(grep=found(hit("/b.md", text="The Launch is near")))
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setenv("TERM", "xterm")
    assert "The \x1b[1;31mLaunch\x1b[0m is near" in run("grep", "the launch", "notes")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("grep", "the launch", "notes")[1]
