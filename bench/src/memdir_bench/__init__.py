"""memdir's benchmarks: what every figure in its documentation was measured with.

A distribution of its own, which `memdir bench` finds by an entry point; the product imports nothing of it. Each folder is a
command: `posix` (the filesystem beside others), `sync`, `server`, `scale` (growth of search), `retrieval` (rankings), `agents`,
`ingest` (files that are no text), `research` (agents that write reports), `shell` (beside bash), `xafs` (what a mount
saves an agent).
Begin with `commands` (their options), then a folder's `command` module; `figures` is what all of them print.
"""

from typing import Final

COMMANDS: Final = {
    "bench smoke": ("memdir_bench.commands", "SMOKE", "measure this machine's figures"),
    "bench server": ("memdir_bench.commands", "SERVER", "requests a second on SQLite and PostgreSQL, and what they cost"),
    "bench sync": ("memdir_bench.commands", "SYNC", "how fast changes travel between mounts, and what they cost"),
    "bench retrieval": ("memdir_bench.commands", "RETRIEVAL", "how well search ranks, on collections with judgements"),
    "bench scale": ("memdir_bench.commands", "SCALE", "how search grows from a thousand to a million passages"),
    "bench agents": ("memdir_bench.commands", "AGENTS", "how well and how fast the memories of agents are found"),
    "bench ingest": (
        "memdir_bench.commands",
        "INGEST",
        "how much of PDFs, office files, pictures and speech is read, and how fast",
    ),
    "bench memory": (
        "memdir_bench.commands",
        "MEMORY",
        "whether what is remembered of notes is right, current and the user's",
    ),
    "bench traces": ("memdir_bench.commands", "TRACES", "what is told of users by what they do with files"),
    "bench xafs make": ("memdir_bench.xafs.command", "MAKE", "make drives of files and questions about them"),
    "bench xafs run": ("memdir_bench.xafs.command", "RUN", "let an agent answer them, with and without the mount"),
    "bench xafs report": ("memdir_bench.xafs.command", "REPORT", "what that cost"),
    "bench shell": ("memdir_bench.commands", "SHELL", "how far the in-process shell agrees with bash, and its speed"),
    "bench nfs": ("memdir_bench.commands", "NFS", "how fast the NFS server answers, beside FUSE"),
    "bench research": ("memdir_bench.research.options", "RESEARCH", "facts found by research agents against rounds and tokens"),
    "bench research export": (
        "memdir_bench.research.options",
        "RESEARCH_EXPORT",
        "reports as DeepResearch Bench and DeepConsult read them",
    ),
    "bench research score": ("memdir_bench.research.options", "RESEARCH_SCORE", "RACE and FACT from what a judge said"),
    "bench posix": ("memdir_bench.commands", "POSIX", "compare filesystem speed with native and other mounts"),
}
"""Command -> module, the `Command` in it, one line for the overview of `memdir --help`."""
