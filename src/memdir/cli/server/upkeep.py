"""`memdir server migrate|backup|restore|check|vacuum`: looking after the server's store, on SQLite and on PostgreSQL."""

from __future__ import annotations

import argparse
import time
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.output import Output, Progress
from memdir.cli.text import plural, visible
from memdir.core.errors import BusyError

if TYPE_CHECKING:
    from memdir.server.storage import StorageOptions
    from memdir.store.store import Store
    from memdir.store.upkeep.engine import Finding

_FINDINGS_SHOWN = 200


def configure_storage(parser: Parser) -> None:
    """The options that say where the store is."""
    parser.add_argument(
        "--database-url", metavar="URL", help="the PostgreSQL database (or MEMDIR_DATABASE_URL), instead of SQLite"
    )
    parser.add_argument("--database-url-file", metavar="FILE", type=Path, help="a file that holds this URL with its password")
    parser.add_argument("--blobs", metavar="URL", help="where large contents are kept (or MEMDIR_BLOBS)")


def _options(args: argparse.Namespace) -> StorageOptions:
    from memdir.server.storage import StorageOptions

    return StorageOptions(database_url=args.database_url, database_url_file=args.database_url_file, blobs=args.blobs)


def _store(args: argparse.Namespace, *, alone: bool, new: bool = False) -> AbstractContextManager[Store]:
    from memdir.core.paths import app_paths
    from memdir.server.storage import maintained_store

    return maintained_store(_options(args), app_paths(), alone=alone, new=new)


def _size(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):,.1f} MiB"


# migrate


def _configure_migrate(parser: Parser) -> None:
    configure_storage(parser)
    parser.add_argument("--check", action="store_true", help="change nothing; say whether there is something to do")


def _migrate(args: argparse.Namespace, out: Output) -> int:
    from memdir.core.paths import app_paths
    from memdir.server.storage import schema_versions

    before, known = schema_versions(_options(args), app_paths())
    after = before
    if not args.check and before != known:
        with _store(args, alone=True, new=True):
            after, _ = schema_versions(_options(args), app_paths())
    if out.json:
        out.document({"before": before, "after": after, "known": known})
    elif before == known:
        out.line(f"the schema is up to date ({known})")
    elif args.check:
        out.line(f"the schema is {before}, this memdir works with {known}")
        if before < known:
            out.note("`memdir server migrate`, or the next start of the server, brings it up to date")
    else:
        out.line(f"the schema went from {before} to {after}")
    return EXIT_OK if after == known else EXIT_NOTHING


# backup


def _configure_backup(parser: Parser) -> None:
    parser.add_argument(
        "file", metavar="FILE|FOLDER", type=Path, help="the archive to write; in a folder it gets a name by time"
    )
    configure_storage(parser)


def _backup(args: argparse.Namespace, out: Output) -> int:
    from memdir.store.upkeep.backup import backup

    file = args.file.absolute()
    if file.is_dir():
        file = file / time.strftime("memdir-%Y%m%dT%H%M%SZ.zip", time.gmtime())
    with _store(args, alone=False) as store, Progress("backup:", noun="row") as progress:
        done = backup(store, file, progress=lambda what, count: progress.update(count, detail=what))
    if out.json:
        out.document({"file": str(file)} | asdict(done))
    else:
        documents = plural(done.rows.get("document", 0), "document")
        out.line(f"{out.name(str(file))}: {documents}, {plural(done.contents, 'large content')}, {_size(done.size_bytes)}")
        for content_hash in done.missing[:_FINDINGS_SHOWN]:
            out.line(f"  not in it, because it is missing or damaged: content {content_hash}")
        if done.missing:
            out.note("`memdir server check --deep` says which documents they belong to")
    return EXIT_NOTHING if done.missing else EXIT_OK


# restore


def _configure_restore(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="an archive made by `memdir server backup`")
    parser.add_argument("--force", action="store_true", help="replace everything that the store holds now")
    configure_storage(parser)


def _restore(args: argparse.Namespace, out: Output) -> int:
    from memdir.store.upkeep.backup import restore
    from memdir.store.upkeep.check import Check

    with _store(args, alone=True, new=True) as store, Progress("restore:", noun="row") as progress:

        def told(what: str, count: int) -> None:
            progress.update(count, detail=what)

        done = restore(store, args.file.absolute(), force=args.force, progress=told)
        found = list(Check(store, progress=told).findings())
    manifest = done.manifest
    if out.json:
        document: dict[str, Any] = {"containers": done.containers, "documents": done.documents}
        document |= {"made_at": manifest.made_at, "engine": manifest.engine, "missing": manifest.missing}
        out.document(document | {"findings": [asdict(finding) for finding in found]})
    else:
        out.line(f"restored {plural(done.containers, 'container')} with {plural(done.documents, 'document')}, as they were at "
                 f"{manifest.made_at} on {manifest.engine}")  # fmt: skip
        out.note("documents are searchable again as the server works through them; mounts compare everything once")
        _show(found, out)
    return EXIT_NOTHING if found else EXIT_OK


# check


def _configure_check(parser: Parser) -> None:
    parser.add_argument(
        "--deep", action="store_true",
        help="read every content and compare its hash; compare whole indexes with the store, not only a sample",
    )  # fmt: skip
    parser.add_argument("--repair", action="store_true", help="repair what can be repaired without inventing anything")
    configure_storage(parser)


def _check(args: argparse.Namespace, out: Output) -> int:
    from memdir.retrieval.derived_indexes import disagreements, mended
    from memdir.server.background.trigram_indexes import every_index
    from memdir.store.upkeep.check import Check

    with _store(args, alone=args.repair) as store, Progress("check:", noun="step") as progress:
        check = Check(store, progress=lambda what, count: progress.update(count, detail=what))
        indexes = every_index(store)
        if args.repair:
            found = check.repair(deep=args.deep) + mended(store, indexes, full=args.deep)
        else:
            found = list(check.findings(deep=args.deep))
            found += [finding for finding, _ in disagreements(store, indexes, full=args.deep)]
    left = [finding for finding in found if not finding.repaired]
    if out.json:
        out.document({"findings": [asdict(finding) for finding in found], "left": len(left)})
    elif not found:
        out.line("clean")
    else:
        _show(found, out)
        if not args.repair:
            out.note("`memdir server check --repair` repairs what can be repaired")
    return EXIT_NOTHING if left else EXIT_OK


def _show(found: list[Finding], out: Output) -> None:
    for finding in found[:_FINDINGS_SHOWN]:
        out.line(f"{finding.kind}: {visible(finding.detail)}" + (" (repaired)" if finding.repaired else ""))
    if len(found) > _FINDINGS_SHOWN:
        out.line(f"and {len(found) - _FINDINGS_SHOWN} more")


# vacuum


def _configure_vacuum(parser: Parser) -> None:
    from memdir.store.upkeep.vacuum import HISTORY_DAYS

    parser.add_argument(
        "--history-days",
        metavar="N",
        type=bounded_int(1, 36_500),
        default=HISTORY_DAYS,
        help=f"how long changes are told to clients that were away (default: {HISTORY_DAYS})",
    )
    parser.add_argument("--full", action="store_true", help="write the database anew; writers wait meanwhile")
    parser.add_argument(
        "--orphans",
        action="store_true",
        help="delete what nobody knows in the place of --blobs, too: no other server may keep contents there",
    )
    configure_storage(parser)


def _vacuum(args: argparse.Namespace, out: Output) -> int:
    from memdir.core.paths import app_paths
    from memdir.server.storage import is_served
    from memdir.store.upkeep.vacuum import vacuum

    on_sqlite = _options(args).url() is None
    if on_sqlite and args.full and is_served(app_paths()):
        raise BusyError("a server is at work, and its writers would wait too long", hint="`memdir server stop` first")
    with _store(args, alone=False) as store, Progress("vacuum:", noun="step") as progress:
        done = vacuum(
            store,
            history_days=args.history_days,
            full=args.full,
            orphans=args.orphans,
            progress=lambda what, count: progress.update(count, detail=what),
        )
    if out.json:
        out.document(asdict(done))
    else:
        out.line(f"the database takes {_size(done.after_bytes)}, it took {_size(done.before_bytes)}")
        out.line(f"gone: {plural(done.changes, 'change')} of the history, {plural(done.versions, 'version')}, "
                 f"{plural(done.audit, 'line')} of the audit log, {plural(done.contents, 'content')}")  # fmt: skip
        if on_sqlite and not done.nothing_kept:
            out.note("a reader kept the write-ahead log from being emptied; try again when the server is stopped")
        if not on_sqlite and args.full and not done.nothing_kept:
            out.note("a transaction that began before keeps what was deleted in the database; try again when it has ended")
    return EXIT_OK


MIGRATE = Command(
    name="server migrate",
    usage="[OPTIONS]",
    description=(
        "Bring the schema of the server's database up to date. A start of the server does so by itself; on PostgreSQL one\n"
        "process does and the others wait. A migration that is killed has not happened."
    ),
    examples=[
        ("memdir server migrate", "says from which version to which"),
        ("memdir server migrate --check --json", "before, after, known"),
    ],
    exit_codes=[(0, "the schema is up to date"), (1, "with --check: it is not")],
    configure=_configure_migrate,
    run=_migrate,
)
BACKUP = Command(
    name="server backup",
    usage="[OPTIONS] FILE|FOLDER",
    description=(
        "Write all that the server keeps, as it is at this moment, into one file: documents, versions, history, memories,\n"
        "keys (as hashes), large contents. The server may be at work. The file can be restored on SQLite and on PostgreSQL,\n"
        "wherever it was made. Passages and vectors are not in it; they are made again."
    ),
    examples=[
        ("memdir server backup /backups", "a new file, named by the time"),
        ("memdir server backup before-upgrade.zip --json", "file, rows, contents, missing, size_bytes"),
    ],
    exit_codes=[(0, "everything is in the file"), (1, "the file is written, but contents were missing or damaged")],
    configure=_configure_backup,
    run=_backup,
)
RESTORE = Command(
    name="server restore",
    usage="[OPTIONS] FILE",
    description=(
        "Put a backup into the server's store, all of it or nothing, and check it. A store that holds containers is not\n"
        "overwritten without --force. Every container begins a new epoch: mounts notice, and compare everything once.\n"
        "On SQLite the server must be stopped; on PostgreSQL stop all servers and workers, too."
    ),
    examples=[
        ("memdir server restore memdir-20260101T000000Z.zip", "into an empty store"),
        ("memdir server restore laptop.zip --database-url-file /etc/memdir/db", "from SQLite to PostgreSQL"),
    ],
    exit_codes=[(0, "restored and clean"), (1, "restored, and the check found something")],
    configure=_configure_restore,
    run=_restore,
)
CHECK = Command(
    name="server check",
    usage="[OPTIONS]",
    description=(
        "Check every rule of the server's store: the database itself, references, reference counts, contents and their sizes,\n"
        "history without gaps, documents that wait for nothing, passages that lack vectors, indexes that disagree with the\n"
        "store. The server may be at work; for --repair on SQLite it must be stopped. A repair invents nothing: contents that\n"
        "are lost are named, with the documents they belong to; indexes are made anew from the store when they are needed."
    ),
    examples=[
        ("memdir server check", "some seconds"),
        ("memdir server check --deep", "reads every content"),
        ("memdir server check --repair --json", "findings (kind, detail, repaired), left"),
    ],
    exit_codes=[(0, "clean, or everything was repaired"), (1, "something is wrong and not repaired")],
    configure=_configure_check,
    run=_check,
)
VACUUM = Command(
    name="server vacuum",
    usage="[OPTIONS]",
    description=(
        "Give space back: contents that nobody refers to, history and versions that are older than they are kept, old lines\n"
        "of the audit log, free pages. Without --full the server may be at work. After --full nothing that was deleted is\n"
        "left in the database's files."
    ),
    examples=[
        ("memdir server vacuum", "what can be done while the server works"),
        ("memdir server vacuum --full --json", "before_bytes, after_bytes, contents, changes, versions, audit"),
    ],
    exit_codes=[(0, "done")],
    configure=_configure_vacuum,
    run=_vacuum,
)
