"""The in-process shell does what bash and its programs do: each script in both, on the same files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from memdir_bench.shell.command import compared, runnable
from memdir_bench.shell.scripts import Script, all_scripts

SEED = 1
RANDOM = 600
"""As in `memdir bench shell`."""
SHARE = 0.99
KNOWN = {
    # the interpreter's own: its find, jq, tar, gzip, cut, wc, tail, sha256sum, rg
    "jq 'keys'", "gzip -k README.md; ls; gunzip", "find . -links", "find . -samefile", "tail +2", "wc < ",
    "cut -d, -f0", "cut -f ", "jq 'del(.users)'", "echo '{bad}' | jq", "echo '1e3' | jq", "(tar cf a.tar nosuch)",
    "(tar cf a.tar src && tar rf", "(tar caf a.tar.gz", "(tar cf a.tar src && mkdir x && tar xvf", "gzip -r notes",
    "sha256sum -b", "sha256sum --tag", "dirname //", "rg -g '!src'",
    # an unset variable under set -u ends bash -c with 127
    "set -u; echo ${undefined_var}",
    # a redirection of a group makes its file before the group runs
    '{ echo "# Index"',
}  # fmt: skip
"""How the scripts begin that are known to differ; `docs/shell.md` says why."""


def differences(tried: list[Script]) -> list[tuple[str, str]]:
    """The scripts on which the shells differ, and in what; several at a time, as bash is another process."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(compared, tried))
    return [(script.text, where) for script, where in zip(tried, found, strict=True) if where]


def scripts() -> list[Script]:
    return runnable(all_scripts(seed=SEED, random_count=RANDOM))[0]


@pytest.mark.promise("shell.agrees")
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
def test_it_agrees_with_bash_but_for_what_is_known(step: int) -> None:
    every = scripts()
    assert len(every) >= 1500
    assert sum(script.kind == "sessions" for script in every) >= 200
    tried = every[step // 2 :: step]
    differing = differences(tried)
    new = [one for one in differing if not any(one[0].startswith(known) for known in KNOWN)]
    assert not new
    assert 1 - len(differing) / len(tried) >= SHARE


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 104))
def test_random_scripts_agree(seed: int) -> None:
    tried = [script for script in runnable(all_scripts(seed=seed, random_count=1000))[0] if script.kind == "random"]
    differing = differences(tried)
    assert 1 - len(differing) / len(tried) >= SHARE, differing[:5]


def test_the_same_seed_gives_the_same_scripts_and_another_gives_others() -> None:
    one, same, other = (
        [script.text for script in all_scripts(seed=seed, random_count=20) if script.kind == "random"] for seed in (1, 1, 2)
    )
    assert one == same
    assert not set(one) & set(other)
