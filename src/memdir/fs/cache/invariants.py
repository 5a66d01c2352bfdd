"""What must hold for the rows of a cache, as queries that find the exceptions, and statements that mend them.

Order matters: each repair may rely on those before it, and may leave work to those behind it (a removed name makes an orphan).
"""

# ruff: noqa: S608 - the texts are put together from constants of this package only
from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import Final

from memdir.core.limits import SYMLINK_MAX_BYTES
from memdir.fs.posix.place import ABSENT, IN_CHUNKS
from memdir.fs.posix.state import CHUNK_BYTES, COOKIE_FIRST, INDEX_BITS, SIZE_MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """`find` yields (number, detail) for every exception; `mend` is run once with that pair as ?1 and ?2 for each."""

    kind: str
    sentence: str
    """What is wrong, with {0} for the number and {1} for the detail."""
    find: str
    mend: tuple[str, ...]


_TYPE: Final = 0o170000
_DIR: Final = stat.S_IFDIR
_FILE: Final = stat.S_IFREG
_LINK: Final = stat.S_IFLNK
_TYPES: Final = (_DIR, _FILE, _LINK, stat.S_IFSOCK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK)
_DIGEST_BYTES: Final = 32
_FREE_COOKIE: Final = "(select max(next_cookie, (select coalesce(max(cookie), 0) + 1 from dentry)) from meta)"

BEFORE_REACH: Final = (
    Invariant(
        kind="type",
        sentence="inode {0} has no file type (mode {1:o})",
        find=f"select ino, mode from inode where mode & {_TYPE} not in {_TYPES}",
        mend=(f"update inode set mode = (mode & 4095) | {_FILE} where ino = ?1 and ?2 is not null",),
    ),
    Invariant(
        kind="name",
        sentence="a name in folder {0} is not allowed: {1!r}",
        find="select parent, name from dentry where name in (x'2e', x'2e2e') or instr(name, x'2f') or instr(name, x'00')",
        mend=("update dentry set name = cast('renamed-' || cookie as blob) where parent = ?1 and name = ?2",),
    ),
    Invariant(
        kind="dangling-name",
        sentence="a name in folder {0} stands for an inode that is not there: {1!r}",
        find="select parent, name from dentry where ino not in (select ino from inode)",
        mend=("delete from dentry where parent = ?1 and name = ?2",),
    ),
    Invariant(
        kind="dangling-folder",
        sentence="the folder {0} of a name is not there or is no folder: {1!r}",
        find=f"select parent, name from dentry where parent not in (select ino from inode where mode & {_TYPE} = {_DIR})",
        mend=("delete from dentry where parent = ?1 and name = ?2",),
    ),
    Invariant(
        kind="root-name",
        sentence="the root has a name in folder {0}: {1!r}",
        find="select parent, name from dentry where ino = 1",
        mend=("delete from dentry where parent = ?1 and name = ?2",),
    ),
    Invariant(
        kind="folder-names",
        sentence="folder {0} has {1} names",
        find=f"""select dentry.ino, count(*) from dentry join inode on inode.ino = dentry.ino
                 where inode.mode & {_TYPE} = {_DIR} group by dentry.ino having count(*) > 1""",
        mend=(
            """delete from dentry where ino = ?1 and ?2 > 1 and (parent, name) != (
                   select parent, name from dentry where ino = ?1
                   order by parent = (select parent from inode where ino = ?1) desc, cookie limit 1)""",
        ),
    ),
    Invariant(
        kind="cookie",
        sentence="two names share the listing position {0}, one is {1!r}",
        find="""select cookie, name from dentry as one where exists (
                    select 1 from dentry as other where other.cookie = one.cookie
                    and (other.parent, other.name) < (one.parent, one.name))""",
        mend=(
            f"""update dentry set cookie = {_FREE_COOKIE} where cookie = ?1 and name = ?2 and exists (
                    select 1 from dentry as other where other.cookie = ?1
                    and (other.parent, other.name) < (dentry.parent, dentry.name))""",
            "update meta set next_cookie = (select max(cookie) + 1 from dentry)",
        ),
    ),
)

AFTER_REACH: Final = (
    Invariant(
        kind="parent",
        sentence="folder {0} says it stands in {1}, its name stands elsewhere",
        find=f"""select inode.ino, inode.parent from inode join dentry on dentry.ino = inode.ino
                 where inode.mode & {_TYPE} = {_DIR} and inode.parent != dentry.parent
                 union all select ino, parent from inode where ino = 1 and parent != 1""",
        mend=(
            "update inode set parent = coalesce((select parent from dentry where ino = ?1), 1) where ino = ?1 and parent = ?2",
        ),
    ),
    Invariant(
        kind="target",
        sentence="inode {0} and its symlink target do not fit together (size {1})",
        find=f"""select ino, size from inode where place != {ABSENT} and ((mode & {_TYPE} = {_LINK}) != (target is not null)
                 or (target is not null
                     and (size != length(target) or length(target) not between 1 and {SYMLINK_MAX_BYTES})))""",
        mend=(
            f"""update inode set target = case when mode & {_TYPE} = {_LINK} then
                    substr(coalesce(nullif(target, x''), cast('lost-target' as blob)), 1, {SYMLINK_MAX_BYTES}) end
                where ino = ?1 and ?2 is not null""",
            f"update inode set size = length(target) where ino = ?1 and mode & {_TYPE} = {_LINK}",
        ),
    ),
    Invariant(
        kind="place",
        sentence="inode {0} is no file and says that its contents are at place {1}",
        find=f"select ino, place from inode where place != {IN_CHUNKS} and mode & {_TYPE} != {_FILE}",
        mend=(f"update inode set place = {IN_CHUNKS} where ino = ?1 and place = ?2",),
    ),
    Invariant(
        kind="absent-hash",
        sentence="file {0} of {1} bytes is absent and does not say what its contents are",
        find=f"""select ino, size from inode where place = {ABSENT}
                 and (target is null or length(target) != {_DIGEST_BYTES} or size = 0)""",
        mend=(  # a hash that nothing has: the sync asks the server for the file of that name and takes what it has
            f"update inode set target = zeroblob({_DIGEST_BYTES}), size = max(size, 1) where ino = ?1 and ?2 is not null",
        ),
    ),
    Invariant(
        kind="chunk-place",
        sentence="file {0} has chunks and says that its contents are at place {1}",
        find=f"""select ino, place from inode where place != {IN_CHUNKS} and exists (
                     select 1 from chunk where key between ino << {INDEX_BITS} and (ino + 1 << {INDEX_BITS}) - 1)""",
        mend=(
            f"""delete from chunk where key between ?1 << {INDEX_BITS} and (?1 + 1 << {INDEX_BITS}) - 1
                and ?2 != {IN_CHUNKS}""",
        ),
    ),
    Invariant(
        kind="size",
        sentence="file {0} has the impossible size {1}",
        find=f"select ino, size from inode where size > {SIZE_MAX_BYTES}",
        mend=(f"update inode set size = {SIZE_MAX_BYTES} where ino = ?1 and size = ?2",),
    ),
    Invariant(
        kind="chunk-owner",
        sentence="chunk {1} belongs to inode {0}, which is no file",
        find=f"""select key >> {INDEX_BITS}, key & {(1 << INDEX_BITS) - 1} from chunk
                 where key >> {INDEX_BITS} not in (select ino from inode where mode & {_TYPE} = {_FILE})""",
        mend=(f"delete from chunk where key = ?1 << {INDEX_BITS} | ?2",),
    ),
    Invariant(
        kind="chunk-end",
        sentence="chunk {1} of file {0} goes beyond the end",
        find=f"""select ino, key & {(1 << INDEX_BITS) - 1} from chunk join inode on ino = key >> {INDEX_BITS}
                 where (key & {(1 << INDEX_BITS) - 1}) * {CHUNK_BYTES} + length(data) > size""",
        mend=(
            f"""delete from chunk where key = ?1 << {INDEX_BITS} | ?2
                and ?2 * {CHUNK_BYTES} >= (select size from inode where ino = ?1)""",
            f"""update chunk set data = substr(data, 1, (select size from inode where ino = ?1) - ?2 * {CHUNK_BYTES})
                where key = ?1 << {INDEX_BITS} | ?2""",
        ),
    ),
    Invariant(
        kind="xattr-owner",
        sentence="inode {0} is gone and has the attribute {1!r}",
        find="select ino, name from xattr where ino not in (select ino from inode)",
        mend=("delete from xattr where ino = ?1 and name = ?2",),
    ),
    Invariant(
        kind="nlink",
        sentence="inode {0} counts {1} links, which is wrong",
        find=f"""select ino, nlink from inode where nlink != case
                     when ino = 1 or (mode & {_TYPE} = {_DIR} and ino in (select ino from dentry)) then
                         2 + (select count(*) from dentry join inode as child on child.ino = dentry.ino
                              where dentry.parent = inode.ino and child.mode & {_TYPE} = {_DIR})
                     else (select count(*) from dentry where dentry.ino = inode.ino) end""",
        mend=(
            f"""update inode set nlink = case
                    when ino = 1 or (mode & {_TYPE} = {_DIR} and ino in (select ino from dentry)) then
                        2 + (select count(*) from dentry join inode as child on child.ino = dentry.ino
                             where dentry.parent = inode.ino and child.mode & {_TYPE} = {_DIR})
                    else (select count(*) from dentry where dentry.ino = inode.ino) end where ino = ?1 and nlink = ?2""",
        ),
    ),
    Invariant(
        kind="intent",
        sentence="intent {0} makes no sense: {1!r}",
        find="""select seq, path from intent where substr(path, 1, 1) != x'2f' or (kind = 'move') != (source is not null)
                or substr(coalesce(source, x'2f'), 1, 1) != x'2f'""",
        mend=("delete from intent where seq = ?1 and path = ?2",),
    ),
    Invariant(
        kind="next-ino",
        sentence="the next inode number {0} was given out before (up to {1})",
        find="select next_ino, (select max(ino) from inode) as top from meta where next_ino <= top",
        mend=("update meta set next_ino = ?2 + 1 where next_ino = ?1",),
    ),
    Invariant(
        kind="next-cookie",
        sentence="the next listing position {0} was given out before (up to {1})",
        find=f"""select next_cookie, (select coalesce(max(cookie), {COOKIE_FIRST - 1}) from dentry) as top from meta
                 where next_cookie <= top""",
        mend=("update meta set next_cookie = ?2 + 1 where next_cookie = ?1",),
    ),
    Invariant(
        kind="next-seq",
        sentence="the next intent number {0} was given out before (up to {1})",
        find="select next_seq, (select coalesce(max(seq), 0) from intent) as top from meta where next_seq <= top",
        mend=("update meta set next_seq = ?2 + 1 where next_seq = ?1",),
    ),
)

UNREACHED: Final = f"""
    with recursive reached(ino) as (
        values (1)
        union select dentry.ino from reached join dentry on dentry.parent = reached.ino
    )
    select ino, mode & {_TYPE} = {_DIR}, exists (select 1 from dentry where dentry.ino = inode.ino) as named
    from inode where ino not in (select ino from reached) and (nlink > 0 or named)"""
"""(ino, is a folder, has a name) of everything that no path leads to; inodes that wait for removal (nlink 0) are in order."""
