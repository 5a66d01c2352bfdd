"""Every sentence that the product promises, with the test that holds it named by id.

A row is `open` as long as no test proves it; `tests/test_promises.py` fails on a promise that is neither open nor tested, on
an open one that has a test, and on a test that names an unknown id. `source` of each group says which issue asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One sentence a user may hold us to. `source` says where it was given."""

    id: str
    sentence: str
    source: str
    open: bool = False


OPEN: dict[str, str] = {
    "setup.test-command": "Every run of the tests is one; it cannot start itself.",
    # A new file is five requests of the kernel's, 20 to 30 us each in Python. Where the disk makes one in 120 us the goals were
    # met, where it takes 10 to 20 they are not, nor are they by bindfs, in C.
    "bench.native-ratios": "Creating is .07 to .18 of native where the disk makes a file in 10 to 20 us.",
    "speed.create": "The same.",
    "speed.trees": "The same, of `tar` and `git clone`.",
    "speed.warm-tools": "The kernel asks for attributes again after a read, as the time of access changes: `git status`.",
    "speed.grep": "The same, of a warm `grep -r`.",
    "speed.lookup": "6.6 us of processor time, and slower than bindfs in C.",
    "speed.create-latency": ".5 ms at p99; native .05.",
    "speed.hundred-thousand": "192 to 213 MB, from run to run; the rest is met.",
    "scale.puts": "314 a second on SQLite, 103 on PostgreSQL, each durable when it is answered.",
    "scale.gets": "PostgreSQL: 834 a second on two cores that also run the clients and the database.",
    "scale.list": "9 ms at 100,000 documents on SQLite, 102 on PostgreSQL, which counts them for the total of a page.",
    "scale.processes": "1.51 times as many, on two cores that also run the clients and the database.",
    "flow.lookups": "4.8 ms, with tar, the daemon, the server and its readers on two cores.",
    "ranked.visible": "54 ms beside an import, when last recorded, 2.8 without.",
    "ranked.import-words": "The same.",
    "ranked.throughput": "241 a second sent one by one, 322 by hundreds.",
    "ranked.prose": "24 and 32 ms at 5,000 documents when last measured.",
}  # fmt: skip
"""Promises that no test and no recorded run proves, and why. Take a line out in the commit that brings the test."""


MEASURED: dict[str, tuple[str, ...]] = {
    "bench.searchable-1s": ("close_to_found_p95", "fresh_files_not_found"),
    "bench.search-60ms": ("search_in_server_p95",),
    "bench.grep-250ms": ("grep_command_p95",),
    "ranked.prose": (
        *(
            f"prose.{size}.{state}_{mode}_10_p{share}"
            for size in (5_000, 20_000, 100_000)
            for state in ("idle", "reading")
            for mode in ("documents", "memories", "hybrid")
            for share in (50, 95)
        ),
        *(f"prose.{size}.read_share" for size in (5_000, 20_000, 100_000)),
        "prose.10000.server_resident",
    ),
    "speed.create": ("create.ratio_native",),
    "speed.warm-tools": (
        "find_warm.ratio_native", "ls_lr_warm.ratio_native", "ripgrep_warm.ratio_native", "git_status_warm.ratio_native",
    ),
    "speed.grep": ("grep_r_warm.ratio_native", "grep_r_cold.ratio_native"),
    "speed.trees": ("git_clone.ratio_native", "untar.ratio_native", "git_status_cold.ratio_native"),
    "speed.lookup": ("lookup.cpu_us_per_op", "lookup.ratio_compiled"),
    "speed.stream": ("stream_write.mb_per_s", "stream_read_cold.mb_per_s"),
    "speed.passthrough": ("stream_write.ratio_native", "stream_read_cold.ratio_native"),
    "speed.create-latency": ("create_p99", "create_max"),
    "speed.lookup-while-indexing": ("lookup_p99_while_indexing",),
    "speed.remote-changes": ("remote_change_visible", "invalidate_10000"),
    "speed.remount": ("remount_after_kill", "lost_after_kill"),
    "scale.puts": ("sqlite.put_16_rate", "postgres.put_16_rate"),
    "scale.gets": ("sqlite.get_16_rate", "postgres.get_16_rate"),
    "scale.list": ("sqlite.list_100000_p95", "postgres.list_100000_p95"),
    "scale.changes": ("sqlite.changes_delivered_p95", "postgres.changes_delivered_p95"),
    "scale.clients": (
        "sqlite.minute_64_errors", "sqlite.minute_64_growth", "postgres.minute_64_errors", "postgres.minute_64_growth",
    ),
    "scale.processes": ("postgres.two_processes",),
    "sync.untar": ("untar_rate", "untar_daemon_growth", "untar_server_growth"),
    "flow.push": ("untar_rate",),
    "flow.lookups": ("untar_lookup_p99",),
    "flow.visible": ("visible_max",),
    "ranked.cranfield": ("cranfield.full.ndcg_10",),
    "ranked.cisi": ("cisi.full.ndcg_10",),
    "ranked.multihop": ("hops.fit.gain_low", "hops.held.gain_low"),
    "ranked.lines": ("lines.static", "lines.dense"),
    "ranked.negatives": tuple(
        f"{name}.shown_for_unrelated" for name in ("cranfield", "cisi", "handwritten", "generated_45", "generated_180")
    ),
    "speed.hundred-thousand": ("resident_100000", "mount_100000", "find_100000"),
    "ranked.lexical-15ms": ("1000000.lexical_p95", "1000000.lexical_top10_equal"),
    "ranked.hybrid-100k": ("100000.hybrid_p50", "100000.hybrid_p95", "100000.vectors_recall_at_10"),
    "ranked.hybrid-1m": ("1000000.hybrid_p50", "1000000.hybrid_p95", "1000000.vectors_recall_at_10"),
    "ranked.scoped-5ms": ("100000.scoped_p95", "1000000.scoped_p95"),
    "ranked.resident": ("100000.server_resident",),
    "ranked.visible": (
        "100000.visible_by_words_p95", "1000000.visible_by_words_p95", "100000.visible_by_meaning_p95",
        "1000000.visible_by_meaning_p95", "import_put_found_p95", "import_visible_by_meaning_p95",
    ),
    "ranked.throughput": ("pipeline_rate", "pipeline_batch_rate"),
    "ranked.import-words": ("import_put_found_p95",),
    "ranked.import-meaning": ("import_visible_by_meaning_p95",),
    **{
        f"agent.speed-{name}": tuple(f"{size}.{kind}_p95" for kind in ("needle", "rare", "common", "mixed"))
        for name, size in {"1k": 1_000, "50k": 50_000, "1m": 1_000_000}.items()
    },
    "agent.negatives": ("negatives_answered", "held_negatives_answered"),
    "agent.needles": ("1000.needles_found", "50000.needles_found", "1000000.needles_found"),
    "agent.hook-speed": ("50000.hook_p95", "1000000.hook_p95"),
}  # fmt: skip
"""Promises about speed, with the figures of `memdir bench` that carry their goals: a figure belongs
in a benchmark and not in a timed test. The last run is in docs/benchmarks.md; a promise whose figures missed there is open."""


def _group(source: str, prefix: str, sentences: dict[str, str]) -> list[Promise]:
    return [
        Promise(id=f"{prefix}.{key}", sentence=text, source=source, open=f"{prefix}.{key}" in OPEN)
        for key, text in sentences.items()
    ]


_DEMO = _group(
    "issue 2, what must work, 1",
    "demo",
    {
        "one-command": "`make demo` in a fresh clone sets everything up, shows the product and exits 0.",
        "corpus": "examples/ holds at least 60 varied real-looking text files of many kinds, in several languages.",
        "words-absent": "The demo's four greps find files in which the words of the query do not occur.",
        "says-which": "When a step of the demo goes wrong it exits non-zero and says which.",
    },
)

_REMOTE = _group(
    "issue 3, semantics",
    "remote",
    {
        "seen-within-a-second": "A change from elsewhere is visible in an already open terminal within a second.",
    },
)

_LAZY = _group(
    "issue 3, contents fetched lazily",
    "lazy",
    {
        "metadata-first": "A mount shows names, sizes, modes and times of a container before it has fetched any contents.",
        "local-changes": "A file whose contents are not here is renamed, linked, deleted and chmodded without them.",
        "fill-exact": "Contents that are fetched later are exactly the announced ones, or nothing.",
        "evict-clean": "`--cache-size` evicts clean contents only.",
        "no-false-push": "What is not here is never pushed as something else, and its only copy is never overwritten.",
        "newer-wins": "When contents were replaced or deleted at the server before they came, the server's state stands.",
        "converges": "Machines that hold few contents converge after any history, as others do.",
        "prefetch": "A background prefetch with a limit brings small and new files first and rests while the server is away.",
        "status": "`memdir status` and searches in place tell what is on the server only.",
        "reads-wait-alone": "A slow or dead server blocks no operation on a file whose contents are here.",
        "reads-end": "A read that cannot be served ends with EIO within a timeout, at an interrupt and at the unmount.",
        "crash": "After a kill at any moment each file is absent or complete.",
    },
)

_SETUP = _group(
    "issue 2, what must work, 2",
    "setup",
    {
        "test-command": "`make test` sets everything up and passes the tests.",
        "ci-order": "`.ci/run` runs lint, types and import rules, then `make test`.",
        "readme-runs": "The README's commands run in a fresh clone.",
        "pip-install": "`pip install .` in any environment gives a working `memdir` command.",
    },
)

_MOUNT = _group(
    "issue 2, by hand, mount",
    "mount",
    {
        "default-path": "`memdir mount notes` mounts at ./notes in the background.",
        "within-2s": "It returns within 2 s, once the directory is usable.",
        "starts-server": "A local server is started by itself when none runs, one per user.",
        "private-server": "The local server listens on loopback with a token, or on a unix socket.",
        "xdg": "Data lives under the XDG folders.",
        "foreground": "`--foreground` stays in the terminal until it is unmounted.",
        "path": "`--path DIR` mounts at another place.",
        "refuse-non-empty": "A folder that is not empty is refused.",
        "import": "`--import` copies the folder in first.",
        "import-skips": "The import skips what .memdirignore, .gitignore and a secret scan say, and lists what it skipped.",
        "no-sync": "`--no-sync` keeps everything local.",
        "sigterm": "SIGTERM unmounts cleanly.",
        "ctrl-c": "Ctrl-C unmounts cleanly.",
        "after-kill": "After kill -9 of the daemon a new mount clears the dead mount and goes on with nothing lost.",
        "as-root": "Root mounts with mount(2).",
        "as-user": "An ordinary user mounts through fusermount3.",
    },
)

_FILES = _group(
    "issue 2, by hand, files",
    "files",
    {
        "shell": "echo >, mv, rm, mkdir -p and cp -r work in a mount.",
        "git-clone": "`git clone` works in a mount.",
        "vim-save": "Saves as vim makes them work in a mount.",
        "sed-in-place": "`sed -i` works in a mount.",
        "rsync": "`rsync -a` works in a mount.",
        "tar": "`tar x` works in a mount.",
        "survive-remount": "The bytes survive unmount and mount again.",
        "acknowledged": "After kill -9 during a copy fsck is clean and every acknowledged byte is there.",
    },
)

_POSIX = _group(
    "issue 3, semantics and proof",
    "posix",
    {
        "areas": "A conformance suite covers chmod, chown, link, mkdir, mknod, open, rename, rmdir, symlink, truncate, unlink, "
        "utimensat, posix_fallocate, xattr and their errnos.",
        "table": "Every case gets the answer that POSIX and Linux give, for root and for other users on a root mount.",
        "native": "The same cases run on a native directory, and nothing differs but what docs/filesystem.md lists.",
        "user": "An ordinary user's mount passes every case that needs no other user.",
        "special": "Sockets, FIFOs and devices are made, used, renamed and removed; they stay here, and `status` counts them.",
        "mmap": "Shared mappings are seen by read and by other processes, and survive a remount.",
        "append": "Processes that append to one file lose no record.",
        "locks": "flock, record locks and open file description locks exclude other processes of the machine.",
        "large": "A file of 10 GB works at every offset; beyond the largest size the answer is EFBIG.",
        "sparse": "A large file takes what was written to it, and st_blocks says so.",
        "statfs": "statfs tells the truth: free space falls with what is written.",
        "inotify": "inotify tells of every change made through the mount.",
        "read-only": "A read-only mount, also one remounted so, refuses every change with EROFS and stays readable.",
        "mount-helper": "mount -t fuse.memdir, a line of fstab and mount -o remount work once memdir is in /usr/local/bin.",
        "tools": "cp -a, rsync -aHAX and tar copy a tree in and out with all its attributes.",
        "many-names": "100,000 entries in one directory can be listed, looked up and deleted.",
    },
)

_GREP = _group(
    "issue 2, by hand, grep",
    "grep",
    {
        "by-meaning": "`memdir grep` finds a file by meaning.",
        "anywhere": "It works from anywhere inside or outside the mount.",
        "outside-error": "A path outside any mount is an error that says what to do.",
        "container": "`--container NAME` searches without a mount.",
        "scope-all": "Without a path the whole container is searched.",
        "scope-folder": "A folder as path means that subtree and nothing else.",
        "scope-file": "A file as path means that file and nothing else.",
        "line-format": "A line is `path:12:text` or `path:12-15:text`, its text on one line.",
        "relative-path": "Paths are relative to the current directory inside the mount.",
        "best-first": "The best hit comes first.",
        "limit": "`-k N` bounds the number of hits.",
        "json": "`--json` gives path, start_line, end_line, text, score, kind and document id.",
        "literal": "`--literal` is byte-exact substring search, like grep -rnF.",
        "containing": "`--containing NAME` finds all sentences that hold the name, and nothing else, those that answer first.",
        "exit-codes": "Exit 0 when something is found, 1 when nothing, 2 on an error.",
        "own-writes": "What was just written is found by the next grep.",
        "offline-marked": "What could not be waited for is searched lexically in place and marked.",
        "scope-exact-lines": "Hits name exact lines.",
    },
)

_PROFILE = _group(
    "issue 2, by hand, profile",
    "profile",
    {
        "first-second": "profile.md exists from the first second.",
        "read-only": "profile.md is read-only.",
        "facts": "profile.md lists facts drawn by rules from files under the memory paths.",
        "pages": "profile/ in a mount says what is known by people and projects, and what changed, with the lines that say it.",
    },
)

_COMMANDS = _group(
    "issue 2, by hand, commands",
    "cli",
    {
        "unmount": "`memdir unmount` unmounts.",
        "list": "`memdir list` lists the mounts, with `--json`.",
        "status": "`memdir status NAME --json` is one object with name, path, pid, uptime_s, queue_length and server.",
        "sync": "`memdir sync` waits until everything is pushed and searchable, with `--json`.",
        "logs": "`memdir logs` shows a mount's log, with `--json`.",
        "server": "`memdir server run|start|stop|status` controls the local server.",
        "server-status": "`memdir server status --json` has url, pid, data_dir and version.",
        "doctor": "`memdir doctor` checks FUSE, permissions, server, model and disk and says how to repair what fails.",
        "doctor-live": "`memdir doctor` runs one live write-search round trip.",
    },
)

_PARTS = _group(
    "issue 2, parts",
    "parts",
    {
        "fuse-direct": "FUSE is spoken directly on /dev/fuse.",
        "readdirplus": "READDIRPLUS is served.",
        "timeouts": "Entries and attributes are cached by the kernel with long timeouts.",
        "invalidation": "Remote changes invalidate the kernel's caches.",
        "large-requests": "Requests are up to 1 MiB.",
        "contract": "MemoryFs, the SQLite cache and a real mount pass one contract.",
        "stateful": "Random operations against a model show no difference.",
        "three-facts": "The push queue, pusher and puller follow the three-facts model.",
        "api-calls": "The server answers the documents, list, search and profile calls that a mount needs.",
        "keys": "API keys are created at first start and stored hashed.",
        "worker": "A worker takes documents through chunking, embedding and indexing, with statuses.",
        "exact-ranges": "Chunks carry exact byte and line ranges.",
        "local-model": "The embedding model is local, arrives as a package and runs without torch.",
        "lexical": "An index of words works beside the vectors, and the two are fused.",
        "imports": "The import rules of the architecture are enforced.",
        "promises": "tests/promises.py lists every promise, and a test fails when one has no test.",
    },
)

_EXERCISE = _group(
    "issue 3, proof",
    "exercise",
    {
        "one-contract": "The same contract cases pass on MemoryFs, on the cache and, through system calls, on a mount.",
        "fsx": "No byte differs from a model in memory: writes, mappings, truncations, holes, copies, kills, remounts.",
        "ignore-bounded": "No pattern in `.memdirignore` makes a change in the mount expensive.",
        "requests-fuzzed": "No request makes the driver fail, hang or answer what the kernel does not take.",
        "writers": "Processes that write at once lose, tear and repeat nothing: appends, names, ranges, locks.",
        "soak": "Eight writers meet no deadlock; the daemon's descriptors and memory stay flat.",
        "escapes": "No path, symlink, Unicode spelling or NUL leads out of the root; odd names are only names.",
        "same-as-native": "Random system calls give the same answers on a mount as on a native directory, remounts between.",
    },
)

_FIGURES = _group(
    "issue 2, figures",
    "bench",
    {
        "smoke-json": "`memdir bench smoke` prints its figures as JSON.",
        "searchable-1s": "A file is searchable within 1 s p95 after close.",
        "search-60ms": "The search in the running server takes under 60 ms p95 on 5,000 chunks.",
        "grep-250ms": "The whole grep command, process start included, takes under 250 ms p95.",
        "help-150ms": "`memdir grep --help` starts in at most 150 ms.",
        "native-ratios": "Create, stat and read reach the prototype's ratios to the native filesystem.",
    },
)

_POSIX_BENCH = _group(
    "issue 3, speed",
    "bench",
    {
        "posix-side-by-side": "`memdir bench posix` measures native, memdir and every installed peer side by side in one run.",
        "posix-random-order": "Its rounds are in random order, the same for the same seed.",
        "posix-json": "It reports medians with spread, as JSON and as a table.",
        "posix-goals": "Every goal of the issue is marked met or missed, with the ratio to native and to the best peer.",
        "posix-leaves-nothing": "No mount and no folder stays behind, also after Ctrl-C and after a workload that fails.",
    },
)

_RECOVERY_COMMANDS = _group(
    "issue 3, what a person sees when things go wrong",
    "cli",
    {
        "confirm-deletions": "`memdir status` names deletions held back; `memdir sync --confirm-deletions` lets them happen.",
    },
)

_RECOVER = _group(
    "issue 3, memdir recover",
    "recover",
    {
        "killed": "`memdir recover` clears the mount of a killed daemon, replays its journal and checks the cache.",
        "dry-run": "`--dry-run` says what is wrong and changes nothing.",
        "hung": "A daemon that hangs is named with its pid and since when; `--force` ends it, and nothing is lost.",
        "locked": "Who else holds a cache is named; only a memdir is ever ended, and only with `--force`.",
        "pid-reuse": "A process that got the number of a dead daemon is left alone.",
        "records": "A record that cannot be read or is gone is written again; no cache is ever deleted.",
        "leftovers": "Stale sockets, half-written files and temporary folders are taken away.",
        "damage": "Damage whose repair may cost contents is left for `memdir fsck --repair`, with exit code 2.",
        "as-user": "It works as root and as an ordinary user.",
    },
)

_READ_ONLY = _group(
    "issue 3, memdir mount --read-only",
    "read-only",
    {
        "refuses": "A read-only mount refuses every change with EROFS, is `ro` for the kernel, and list and status say so.",
        "follows": "Changes from elsewhere still arrive in a read-only mount.",
    },
)

_IGNORE = _group(
    "issue 3, .memdirignore",
    "ignore",
    {
        "as-git": "A pattern in `.memdirignore` means what `git check-ignore` says it means.",
        "at-once": "A change of `.memdirignore` counts from the next operation on; what is no longer ignored is sent.",
        "bounded": "Its size is bounded, no pattern is slow, and a line that cannot match is logged.",
    },
)

_FSCK = _group(
    "issue 3, memdir fsck",
    "fsck",
    {
        "exit-codes": "`memdir fsck` ends with 0: clean or repaired; 1: something is wrong or lost; 2: it cannot be checked.",
        "mounted": "A mounted memory is refused with what to do.",
        "emptied": "A database that was emptied or deleted is never taken for a new memory.",
        "salvage": "Of a damaged database `--repair` saves what can be read, says what cannot, and keeps the damaged file.",
    },
)

_REFUSED = _group(
    "issue 3, what a person sees when things go wrong",
    "refused",
    {
        "plainly": "What the machine refuses is one line and a hint with exit code 2, and leaves nothing behind.",
        "helper": "An ordinary user without a working fusermount3 is told what to install.",
        "folders-closed": "memdir's folders that others may write to are closed with a line; somebody else's are refused.",
        "disk-full": "A full disk is told by `memdir status`, and the mount still ends in order.",
        "newer": "A cache that a newer memdir wrote is refused with the word to upgrade, and is not touched.",
        "locked": "A cache or database that another program holds is waited for a bounded time, then that program is named.",
    },
)

_REPAIR = _group(
    "issue 3, what a person sees when things go wrong",
    "unmount",
    {
        "names-users": "`memdir unmount` of a mount in use says at once who uses it, and leaves it as it is.",
        "lazy": "`memdir unmount --lazy` detaches at once and lets users finish what they have open.",
        "force": "`memdir unmount --force` takes the mount away under its users and ends the daemon.",
    },
)

_SURVIVES = _group(
    "issue 3, proof; quality.md rows 4, 5, 6, 10, 11",
    "survives",
    {
        "kill": "After kill -9 at any system call nothing answered is lost, and what was not answered is whole or not there.",
        "power-cut": "After a power cut at any moment nothing that was fsynced is lost and fsck finds nothing.",
        "migration": "A cache of every earlier schema opens, and does after a power cut at any moment of its migration.",
        "errors": "A disk that refuses any call leaves nothing half done, and the filesystem goes on when the disk does.",
        "full-disk": "On a full disk writing says ENOSPC, deleting works and gives space back, and a killed mount opens again.",
    },
)

_BLOBS = _group(
    "issue 3, semantics and speed",
    "large",
    {
        "written-once": "Contents of 1 MiB and more are written to the disk once, not to journal, log and table.",
        "killed": "A kill at any moment leaves large contents as they were answered, and no byte from behind the end.",
        "power-cut": "After a power cut large contents that were fsynced are there, and no file shows another one's bytes.",
        "full-disk": "Large contents leave room to remove them: a disk that they fill still takes a deletion.",
        "reserved": "fallocate of a large file reserves its space; a sparse file of 10 GB takes none.",
        "fsck": "fsck finds missing, foreign and unnamed blobs; repairs lose no bytes and invent none.",
        "passthrough": "With `--passthrough` the kernel reads and writes large files by itself, and a kill loses nothing.",
        "bounded-memory": "The daemon's memory does not grow with the size of a file.",
    },
)

_REQUESTS = _group(
    "issue 3, speed",
    "speed",
    {
        "create": "Creating small files reaches 0.5 of the native filesystem's speed.",
        "warm-tools": "Warm find, ls -lR, ripgrep and git status reach 0.9 of native.",
        "grep": "grep -r reaches 0.4 of native warm and 0.2 cold.",
        "trees": "git clone reaches 0.4 of native, untar 0.3, a cold git status 0.25.",
        "lookup": "A LOOKUP takes at most 8 us of processor time and is no slower than compiled libfuse.",
        "stream": "Large files are written at 200 MB/s and read at 800 MB/s.",
        "passthrough": "Root's passthrough reaches 0.9 of native for large files, with a real fsync.",
        "create-latency": "A create takes at most 150 us at p99 and never more than 10 ms.",
        "lookup-while-indexing": "A lookup takes under 1 ms at p99 while the server indexes.",
        "remote-changes": "A remote change is visible within 50 ms of its arrival, 10,000 are invalidated in 200 ms.",
        "remount": "After SIGKILL a mount is back in 0.5 s and nothing acknowledged is lost.",
        "hundred-thousand": "With 100,000 files memdir takes 200 MB, mounts in 0.5 s and is listed by find in 2 s.",
        "requests-create": "A new file with contents costs at most 5 requests: its own 3, and 2 of the kernel's checks.",
        "requests-warm": "A repeated stat and a repeated read ask the daemon nothing.",
        "requests-grep": "A cold grep -r asks at most 1.1 times a file.",
        "requests-ripgrep": "A warm ripgrep asks at most 0.05 times a file.",
        "requests-listing": "A cold ls -lR asks at most 0.1 times a file.",
        "requests-lookup": "A cold stat is one LOOKUP and nothing more.",
    },
)

_NETWORK = _group(
    "docs/threat-model.md, network",
    "network",
    {"no-telemetry": "Nothing that is used reports home, and none leaves a device id behind."},
)

_API = _group(
    "issue 4, API",
    "api",
    {
        "documented": "Every call of the wire contract answers with its fields, defaults, errors and statuses.",
        "openapi": "The server serves a complete OpenAPI document.",
        "container-spellings": "A container may be named by containerTag or by containerTags.",
        "custom-ids": "A document may be named by id or custom id wherever one is allowed.",
        "filters": "Metadata filters know AND, OR, equality, numbers, text and list containment, and negation.",
        "pages": "Pages of a listing neither skip nor repeat what stood there all the time.",
        "idempotency": "A call repeated with its idempotency key gets the first answer and happens once.",
        "etags": "ETag, If-Match and If-None-Match keep one writer from undoing another.",
        "limits": "A request beyond a size limit is refused with a status that says so.",
        "gzip": "Requests and answers may be compressed, and a bomb is refused.",
        "bad-input": "Every bad input is a clear 4xx and never a 5xx.",
        "capabilities": "/v1/capabilities says what this server can do.",
        "move": "A subtree moves in one step.",
        "versions": "Earlier versions of a document can be listed, read and restored.",
        "export": "A container leaves as a plain archive and comes back from it byte for byte.",
        "conversations": "A conversation sent message by message becomes one document that memories are drawn from.",
        "memories": "Memories can be written, revised and forgotten directly; a forgotten one is out of profile and search.",
    },
)

_SDKS = _group(
    "issue 4, API",
    "sdk",
    {
        "python-3": "The published Python SDK 3.x works unmodified with a base URL and a key.",
        "python-5": "The published Python SDK 5.x works unmodified with a base URL and a key.",
        "typescript-4": "The published TypeScript SDK 4.x works unmodified with a base URL and a key.",
        "bash": "The published Python virtual bash works unmodified with a base URL and a key.",
    },
)

_KEYS = _group(
    "issue 4, users, keys, isolation",
    "keys",
    {
        "created": "`memdir server key create --name N --json` shows a key once, in the field key; only its hash is stored.",
        "scopes": "A key opens only the containers, actions and paths of its scope.",
        "life": "A key that expired, was revoked or was rotated away opens nothing.",
        "login": "`memdir login`, `whoami` and `logout` keep credentials in a 0600 file and out of arguments and logs.",
        "precedence": "Credentials are taken from flag, environment, project and user, in this order.",
        "isolation": "Every route refuses a wrong key, another organisation's and another container's, and shows nothing.",
        "second-wall": "PostgreSQL itself shows one organisation nothing of another.",
        "rates": "A key beyond its rate or quota is told so and when to come back.",
        "audit": "Every change and every read through the API can be asked for: who, what, when, with which key.",
        "origins": "Foreign Host, Origin and Sec-Fetch headers are refused on every port.",
        "tls": "The server speaks TLS, and warns when it listens wider than loopback without it.",
        "secrets": "Secrets of 40 kinds planted in documents reach no memory, profile or log.",
    },
)

_PIPELINE = _group(
    "issue 4, pipeline",
    "pipeline",
    {
        "resumes": "A crash at any step of the pipeline resumes and has its effect once.",
        "poison": "A poisoned document ends as failed with its reason and stops no other.",
        "dead-letters": "Work that was given up is listed with its reason and can be tried again.",
        "fair": "An import into one container does not keep another container waiting.",
        "priorities": "An edit overtakes an import.",
        "cancelled": "A newer revision cancels the work on the older one.",
        "statuses": "A document's status moves forwards only and never rests unfinished without work to finish it.",
        "workers": "Workers run in the server, as many as asked for, or as processes of their own.",
        "kill": "kill -9 of server and worker under load loses nothing acknowledged, on both stores.",
    },
)

_STORES = _group(
    "issue 4, storage",
    "store",
    {
        "one-contract": "One contract suite holds for SQLite and for PostgreSQL.",
        "many-processes": "Any number of server processes share one PostgreSQL, and each hears the others' changes.",
        "blobs": "Contents are kept once, on disk or in an S3-compatible store.",
        "deletes": "What is deleted is gone from database, index, vectors, versions and contents.",
        "migrates": "A store of every released schema migrates, also when it is killed in the middle.",
        "backup": "A backup taken under load restores to a store that checks clean, on either engine.",
        "check": "`memdir server check` finds each class of damage.",
        "vacuum": "`memdir server vacuum` gives space back.",
    },
)

_WIRE = _group(
    "issue 4, proof",
    "wire",
    {
        "fuzzed": "Property-based requests made from the OpenAPI document find no server error and no schema break.",
    },
)

_SCALE = _group(
    "issue 4, figures",
    "scale",
    {
        "puts": "500 small puts a second are acknowledged durably.",
        "gets": "1,000 gets a second are answered.",
        "list": "The p95 of a list is under 20 ms at 100,000 documents.",
        "changes": "Changes are delivered within 50 ms of their commit.",
        "clients": "64 clients for a minute meet no error, and memory stays flat.",
        "processes": "Two server processes on PostgreSQL answer 1.6 times as many CPU-bound reads as one.",
    },
)

_SYNC = _group(
    "issue 5, what must work",
    "sync",
    {
        "planner": "The planner is right for every three facts of perturbed trees, and settles in a bounded number of rounds.",
        "queue": "The queue keeps one row a path, latest wins, and a change behind one in flight is never lost or sent twice.",
        "parallel": "Eight different paths are pushed at the same time by default; overlapping ones never.",
        "poller": "One bulk call follows all documents in processing; what failed there is told beside the source.",
        "scan": "A repair pass finds what the feed never told, and deletes no more than `--max-delete` of the tree unasked.",
        "plain": "The same engine works against a plain v3 server: listing by updatedAt, no revisions, faults included.",
        "renames": "Renames of files and folders in any order, with edits, swaps, case, links, files in place of folders: both "
        "sides end equal and nothing is lost.",
        "rename-cheap": "A renamed folder is renamed at the server, also when renamed again before; nothing is sent anew.",
        "untar": "10,000 files written at once reach the server in batches, with bounded memory.",
        "two-mounts": "Two mounts of a container on one machine, each with its own place, converge.",
        "conflict-both": "A conflict keeps both sides.",
        "merge": "Text that both sides changed at different places is merged; whosever line it was, it is there.",
        "conflicts-command": "`memdir conflicts` lists them, shows both sides, and settles them.",
        "history": "`memdir history` lists every overwritten or deleted revision, for as long as the container keeps them.",
        "restore": "`memdir restore` brings a revision back by number or time; `memdir undelete` a file or a folder.",
        "offline": "A mount starts, works and stays offline for days, and converges when the server is back.",
        "backup": "A server restored from an old backup is noticed, even when it counted on meanwhile, and nothing is lost.",
        "wiped": "A server that was wiped is never taken for `delete everything`: the sync stops and asks.",
        "key": "After a revoked key the queue stays, the user is told once, and it goes on by itself with a new one.",
        "disk-full": "A full disk on either side loses nothing, and the sync goes on when there is room.",
        "clock": "A clock that is a day off changes nothing but the day in a conflict's name.",
        "drain": "Unmount pushes what is left with a progress bar and says honestly what stays.",
        "queue-command": "`memdir queue` says what waits, since when, why; `memdir retry` and `memdir sync --wait` act on it.",
        "memory-paths": "`--memory-paths` says which paths of a container become memories; empty means none.",
        "agent-hint": "The marked block in CLAUDE.md and AGENTS.md comes once, goes at the unmount, and touches nothing else.",
    },
)

_SYNC_PROOF = _group(
    "issue 5, proof",
    "simulated",
    {
        "schedules": "Simulated mounts, server, network, disks, clocks and crashes: no divergence, no lost acknowledged write.",
        "replay": "A seed replays its schedule byte for byte.",
        "shrinks": "A failing schedule is cut down to the few steps that fail.",
        "processes": "Three real mounts, a proxy that delays, drops, repeats, cuts, and kills: nothing lost, nothing back from "
        "the dead, nothing old over new.",
        "mutants": "Tests notice changes of the planner's and the queue's code.",
    },
)

_SYNC_BENCH = _group(
    "issue 5, figures",
    "flow",
    {
        "push": "At least 200 small files a second reach the local server.",
        "lookups": "While they do, a lookup on the mount takes under 2 ms in 99 of 100 cases.",
        "visible": "An edit in one mount is visible in another within 2 s.",
        "bench": "`memdir bench sync` measures push, pull, propagation, bytes a changed byte, idle cost and growth.",
    },
)

_RETRIEVAL = _group(
    "issue 6, what must work",
    "retrieval",
    {
        "bm25": "What words find, and in which order, is that of exhaustive BM25 but for rounded lengths (docs/adr/0023).",
        "languages": "Words are found in any inflection of detected languages, CJK by parts of words; case and accents aside.",
        "multilingual": "With the multilingual extra a question in one language finds the answer in another.",
        "endpoint": "An embedding endpoint of the user's own can take the place of the local model.",
        "rerank": "A reranker of the user's own (an ONNX model or an endpoint) orders the best hits anew.",
        "spans": "Every passage keeps the exact bytes and lines it came from; what is shown is there.",
        "scope-cost": "A search below ten files compares what stands in ten files.",
        "grouping": "Hits of a file stand together; neighbours come on request; a budget in tokens is filled, and what it left "
        "out is said.",
        "explain": "`--explain` shows each stage's time and each hit's signals.",
        "memories-ranked": "Generated memories stand in the same ranked list as passages.",
        "split": "Two questions in one are both answered.",
        "hops": "Links, names, co-occurrence and memories bring the second file of a question that needs two.",
        "incremental": "An edit changes only its own entries; a moved subtree costs no embedding; a deletion leaves nothing.",
        "index-check": "`memdir server check` finds an index that disagrees with the store, and says so.",
        "reindex": "`memdir server reindex` builds the indexes anew while searches are answered.",
        "literal-index": "`--literal` and `--regex` read only files that can match, and miss none that grep finds.",
        "shell": '`memdir init --shell` makes flagless `grep "words"` in a mount semantic and leaves every other grep alone.',
        "calibrated": "A similarity means the same in a small memory and in a large one.",
        "nothing": "An unrelated question finds nothing at the default threshold.",
        "wire-search": "`/v3` and `/v4` search keep thresholds, filters, `rerank`, `include` and limits inside the search.",
    },
)

_RETRIEVAL_PROOF = _group(
    "issue 6, proof",
    "retrieved",
    {
        "brute-force": "After random edits the indexes answer as a comparison of everything does.",
        "scope": "Nothing outside a scope is ever found.",
        "containers": "Two containers never meet, not even in a score.",
        "killed": "Killed anywhere in the middle of indexing, the index is whole or builds itself again.",
        "same": "The same question to the same index gives the same answer, byte for byte, also after a start.",
    },
)

_RETRIEVAL_BENCH = _group(
    "issue 6, figures",
    "ranked",
    {
        "quality": "`memdir bench retrieval` gives nDCG, recall, MRR, success with intervals, per stage and ablated.",
        "cranfield": "Cranfield nDCG@10 is at least .42 with the local models.",
        "cisi": "CISI nDCG@10 is at least .44 with the local models.",
        "lines": "In 99 of 100 hits in text the printed lines hold the answer.",
        "negatives": "At most 5 in 100 unrelated questions find something at the default threshold.",
        "multihop": "The second file is in the top 10 more often than with plain top-k.",
        "scale": "`memdir bench scale` measures build, memory, disk, latency and recall to a million chunks, beside FTS5 and "
        "exhaustive search.",
        "lexical-15ms": "Lexical p95 is at most 15 ms at a million chunks.",
        "hybrid-100k": "Hybrid p50 and p95 are at most 6 and 10 ms at 100,000 chunks, with recall@10 of .96.",
        "hybrid-1m": "Hybrid p50 and p95 are at most 8 and 25 ms at a million chunks, with recall@10 of .96.",
        "scoped-5ms": "A search below 10 files takes at most 5 ms.",
        "resident": "The index of 100,000 chunks holds at most 600 MB in memory.",
        "visible": "An update is found by its words within 20 ms and by its meaning within 1 s.",
        "import-words": "A file that is saved while an import goes on is found by its words within 20 ms.",
        "import-meaning": "A file that is saved while an import goes on is found by its meaning within 1 s.",
        "prose": "Search among 5,000 to 100,000 documents that people wrote takes 10 to 12 ms at p50, 20 to 25 at p95.",
        "throughput": "250 short memories a second go through the whole pipeline.",
    },
)

_REAL = _group(
    "issue 19, on what people really store",
    "real",
    {
        "bounded": "A statement of a search, a put, a hook or a listing is bounded by what it returns; exceptions are listed.",
        "connections": "Requests that never come to their end keep nobody out, and a body over the limit is answered.",
        "imports": "An import is read by a process of its own, at a lower priority, and edits do not wait for it.",
        "weak": "Where nothing is sure, the nearest hits are shown as weak; with a threshold nothing is.",
        "alike": "Equal and nearly equal files take one place in the results, with the number of others.",
        "grep": "An expression finds the lines that GNU grep -E finds, or is refused with a reason.",
        "notebooks": "A notebook is found by its cells, as text and code with their numbers.",
        "artifacts": "What tools made and can make again is not synced, and nothing that a person wrote is left out.",
        "ignored": "What an ignore file names is synced, searched last and not by meaning, unless its folder is asked.",
        "about-the-user": "Titles, abstracts and code that a program posts are documents, never facts about the user.",
    },
)

_AGENTS = _group(
    "issue 7, what must work",
    "agent",
    {
        "store": "What `memory_store` takes is a Markdown file in the mount, a record, and found by the next search.",
        "by-hand": "A file written by hand under `/memory/<project>/` is a memory as any other.",
        "ranking": "Search ranks by the seed's five signals with its formulas and weights; `--explain` prints them.",
        "exhaustive": "The top 10 are those of scoring every memory.",
        "expansion": "About fifty abbreviations are expanded both ways; words are stemmed as Porter says.",
        "no-model": "Storing, and finding by words, load no model, and the same memories and question give the same answer.",
        "semantic": "A search finds a memory in other words, unless only words are asked for, and other topics find nothing.",
        "chunks": "Long texts are cut into pieces of at most 512 tokens that overlap by 64, none below 64.",
        "duplicates": "A memory that is (nearly) there already is not stored twice, and the answer says which one it is.",
        "secrets": "A secret is refused or redacted, and never stands in a file, record, index or log.",
        "limits": "Size, count and rate are bounded, with a message that says what to do.",
        "commands": "`memdir memory store|search|list|show|edit|delete|tag|stats` do what their help says.",
        "deleted": "After a delete nothing of the memory is found anywhere.",
        "init": "`memdir init --agent` finds hosts, shows the diff, backs up, installs, and does nothing the second time.",
        "deinit": "`memdir deinit` leaves every file of the host as it was, byte for byte.",
        "project": "Worktrees, subfolders and clones are one project; the cwd of the JSON, then MEMDIR_PROJECT.",
        "project-identity": "Projects that are called alike never share memories; a renamed or moved one keeps its own.",
        "provenance": "Who stored a memory, whether it is trusted and when it was confirmed is said wherever it is given.",
        "poison": "What others wrote is given to no prompt unasked before a person confirms it.",
        "superseded": "What updates a memory takes its place, and the former text is never lost and never given as current.",
        "superseded-rightly": "Of pairs that nobody tuned on at most one in thirty is replaced that should not be.",
        "review": "What is unsure is a question that one key, one call or one tool answers.",
        "transcripts": "Transcripts of Claude Code, Codex and Gemini CLI are read as what was said and run, by rules alone.",
        "capture": "What a session decided, corrected or found out waits in the inbox when it ends; secrets and orders never.",
        "sources": "Guide files, decision records and commits that say why are brought in once.",
        "real-hosts": "Hooks of real host programs capture what one session said; once kept, they give it to the next.",
        "named-files": "A memory that names a file which the checkout lacks is given with the word that it is not there.",
        "inbox": "What is proposed is found and given by nothing until it is confirmed or said again elsewhere.",
        "hook-context": "The hook prints the seed's block, fenced as data, within its budgets, nothing twice in a session.",
        "hook-never-fails": "Bad JSON, no database, a locked one, a dead server: exit 0, nothing printed, one line in a log.",
        "meaning": "A prompt gets the memory that it needs in other words, of its project or of none; small talk gets none.",
        "hook-in-time": "The hook gives up after 3 s.",
        "hosts": "Documented examples of every host's format are answered as that host expects.",
        "mcp-tools": "The nine tools have annotations, titles, schemas, structured results; bad input is a tool error.",
        "mcp-transports": "stdio and Streamable HTTP serve clients of the previous and of the current protocol.",
        "mcp-guarded": "Over HTTP a wrong Host, Origin or token is refused.",
        "mcp-parent": "The server ends with its parent.",
        "memory-tool": "The memory tool's six commands work on the same files and never leave their root.",
        "plugin": "The plugin folder, its marketplace file, skill and hooks are what Claude Code documents.",
        "export": "`memdir export` and `import` bring every memory over, once.",
        "foreign": "Exports of the reference MCP memory server, mem0, basic-memory and claude-mem are read.",
        "cost": "`memdir cost` computes the seed's token model on the user's own numbers.",
        "index": "The index of agents' memories agrees with the store and gives back the room of deleted ones.",
        "bench": "`memdir bench agents` measures accuracy and scale beside plain FTS5 in one run.",
        "seed-cases": "The seed's ten cases: 10 of 10 top-1, no false positive.",
        "negatives": "Of the benchmark's questions about what no memory says at most 5 % are answered.",
        "long-prompt": "One sentence of a prompt of 170 words finds its memory; small talk and other topics find nothing.",
        "slips": "A word with a slip, or written together or apart, is understood; what memories say is read as it stands.",
        "parallel": "Eight sessions at once store and search without an error, a lost memory or an orphan.",
        "killed": "Killed in the middle of a store, the memory is whole or not there.",
        "speed-1k": "Search p95 under 1 ms at 1,000 memories.",
        "speed-50k": "Search p95 under 3 ms at 50,000 memories.",
        "speed-1m": "Search p95 under 15 ms at 1,000,000 memories, needles under 1 ms.",
        "needles": "100 of 100 needles are top-1.",
        "hook-speed": "The hook's p95 is under 60 ms at 50,000 memories and 90 ms at 1,000,000.",
    },
)

_FACTS = _group(
    "issue 24, generated memories",
    "facts",
    {
        "lives": "What is remembered of notes is right nine times of ten, and stands in the note, in wording not made for.",
        "current": "After many changes the profile says what holds now and nothing that held before.",
        "prose": "Documents that are about nobody bring no facts, even among the memories.",
        "diary": "Of a diary in four languages what lasts is remembered, four facts of five are that; none outlives its entry.",
        "own-files": "Profiles kept for agents, and what people write of themselves, are read; blank templates are not.",
        "endings": "What a later note says is over, or is otherwise now, is shown no more; what it only mentions stays.",
        "several": "All that a note says is over, or is otherwise now, goes, in every file, and comes back if the note goes.",
        "plans": "What is planned changes nothing that holds until then.",
        "tasks": "What was to be done, or wanted, is over when a note says that it is done; rules and other tasks stay.",
        "clauses": "A sentence that says several things is as many facts, which change apart.",
        "aspects": "What is said of another side of a thing, or of another one of several, ends nothing.",
        "lists": "Items of a list that speaks of the user are remembered, however long it is.",
        "hearsay": "What others say of the user, quotations, fiction, and orders to a model are no facts.",
        "reported": "What an agent notes that the user said, or the user that a friend did, is their own statement.",
        "own-name": "Who is called as the user is the user: in notes of agents, in chats, and in files called so.",
        "note-programs": "Notes are read as Obsidian, Logseq, Notion and Org keep them; clipped pages bring no facts.",
        "assistants": "What other assistants remember of their user is read from a file as they show it, with its days.",
        "speakers": "In chats, conversations and letters each says what is theirs; a model says nothing about the user.",
        "languages": "Notes in German, Spanish and French bring the facts that English ones would, also across languages.",
        "when": "A fact says since when it is so; what is noted later of a former day changes nothing that holds now.",
        "why": "A fact says the file and the lines that it comes from, and what it said before.",
        "reconciled": "Reconciling is idempotent and has no cycles; what nobody says any more is nowhere.",
    },
)

_FORGETTING = _group(
    "issue 24, forgetting",
    "forget",
    {"nowhere": "What is forgotten stands in no file, no history, no index, no log and no mount of this machine any more."},
)

_TRACES = _group(
    "issue 25, behavioural memory",
    "traces",
    {
        "complete": "What shells, editors, Python, git and archive tools do in a traced mount becomes the right events.",
        "saves": "A save through a temporary file is one edit of the real file.",
        "rebuilt": "The changes in the log rebuild each file bit for bit.",
        "fingerprint": "All seventeen numbers of a session are as FileGram's Table 6 says.",
        "consolidated": "The order of sessions does not matter, and a removed session was never there.",
        "said": "What is said of somebody's ways does not contradict the numbers it is told by.",
        "forgotten": "What was recorded and is forgotten is nowhere in the log.",
        "watched": "What happens in a watched folder is recorded: made, changed, renamed, moved, deleted.",
    },
)

_RESEARCH = _group(
    "issue 26, research agents",
    "research",
    {
        "cites": "Every citation of a report leads to lines of an archived page that exist and hold the numbers, names and "
        "quotations of its sentence; what does not is left out and said.",
        "evidence": "Where nothing was found, no report is written.",
        "resume": "A research that is killed at any moment goes on to the same end; no answer and no page is paid for twice.",
        "budget": "A research stops before it spends more than one answer above its budget; a larger one goes on.",
        "confined": "Agents write only what their stage may write, and fetch no address of this machine or network.",
        "injection": "What a page says to an assistant is marked as the page's, and only addresses that a search, an archived "
        "page or the user named are fetched.",
        "faults": "Busy, slow, broken and lying pages and models cost a retry or a page, and never the run.",
        "export": "A report is read without the workspace: as HTML that opens each citation at its lines, DOCX, PDF, Markdown.",
    },
)

_NFS = _group(
    "issue 27, the same memory over NFS",
    "nfs",
    {
        "alone": "Only who mounted it, and root, is answered; nobody gets a handle without the random path of the export.",
        "handles": "File handles hold over restarts and renames, and are never those of another file.",
        "commit": "What is committed survives a power cut, and a client is told when it has to write again.",
        "malformed": "What is no call, or is cut off, changes nothing and ends its own connection at most.",
        "kernel": "The NFS client of a Linux kernel mounts it, and does with it what people do.",
        "mount": "A memory served over NFS is synced and searched like a mounted one.",
    },
)

_SHELL = _group(
    "issue 27, the same memory in process",
    "shell",
    {
        "agrees": "What agents type does in the in-process shell what it does in bash with GNU tools, for 99 of 100 scripts.",
        "bounded": "A script ends within its time, commands, output and memory, and the shell is usable after it.",
        "contained": "A script gets no file, no variable and no connection of this machine.",
        "whole-files": "A script that is cancelled leaves each file as it was or as the command wrote it.",
        "memory": "Shells of one memory see each other's files, find by meaning, and push what they wrote.",
        "tool": "A host that speaks MCP is given the shell as one tool.",
    },
)

_XAFS = _group(
    "issue 28, what a mount saves an agent",
    "xafs",
    {
        "proved": "Every question of a made corpus is answered by its gold files, and by no part of them.",
        "report": "Runs are kept and go on where they were; the report tells cost and right answers of every condition.",
    },
)

_EXTRACTION = _group(
    "issue 23, every file becomes readable",
    "extract",
    {
        "kinds": "PDF, office files, web pages, books, mail, pictures and archives are read, whatever they are called.",
        "inside": "Text in pictures inside of mails, archives and office files is read; what is damaged there leaves the rest.",
        "encodings": "Text from before Unicode is read in the encoding it was written in, with the bytes it stands at.",
        "debian": "In 300 documents of 50 kinds, which Debian packages carry, what other programs find is found.",
        "speech": "What is said in a recording is read, with the time of each sentence.",
        "harmless": "Damaged files and bombs end within their limits, with a reason, and the next file is read as before.",
        "confined": "A document is read without network and secrets, in bounded time and memory, and alone.",
        "found": "What stands in such a file is found by meaning, shown with the path of the file, and read beside it.",
        "siblings": "The text beside a file moves, is copied and vanishes with it, on every mount, and is never synced.",
        "once": "The same bytes are read once.",
        "addresses": "The page of an address is read where that is on, from nowhere inside the house; nothing else is fetched.",
        "upgraded": "A store made before is brought up to date, and its files are read.",
    },
)

PROMISES: tuple[Promise, ...] = (
    *_DEMO,
    *_LAZY,
    *_REMOTE,
    *_SETUP,
    *_MOUNT,
    *_FILES,
    *_POSIX,
    *_GREP,
    *_PROFILE,
    *_COMMANDS,
    *_PARTS,
    *_EXERCISE,
    *_FIGURES,
    *_SURVIVES,
    *_BLOBS,
    *_RECOVERY_COMMANDS,
    *_RECOVER,
    *_READ_ONLY,
    *_IGNORE,
    *_FSCK,
    *_REFUSED,
    *_REPAIR,
    *_POSIX_BENCH,
    *_REQUESTS,
    *_NETWORK,
    *_API,
    *_SDKS,
    *_KEYS,
    *_PIPELINE,
    *_STORES,
    *_WIRE,
    *_SCALE,
    *_SYNC,
    *_SYNC_PROOF,
    *_SYNC_BENCH,
    *_RETRIEVAL,
    *_RETRIEVAL_PROOF,
    *_RETRIEVAL_BENCH,
    *_AGENTS,
    *_FACTS,
    *_REAL,
    *_FORGETTING,
    *_TRACES,
    *_RESEARCH,
    *_NFS,
    *_SHELL,
    *_XAFS,
    *_EXTRACTION,
)

if OPEN.keys() - {promise.id for promise in PROMISES}:
    raise ValueError(f"open ids that are no promise: {sorted(OPEN.keys() - {promise.id for promise in PROMISES})}")
