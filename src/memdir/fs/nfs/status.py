"""The numbers that NFS version 3 refuses with (RFC 1813, section 2.6)."""

from __future__ import annotations

import errno
from typing import Final

OK: Final = 0
OF_ERRNO: Final = {
    errno.EPERM: 1, errno.ENOENT: 2, errno.EIO: 5, errno.ENXIO: 6, errno.EACCES: 13, errno.EEXIST: 17, errno.EXDEV: 18,
    errno.ENODEV: 19, errno.ENOTDIR: 20, errno.EISDIR: 21, errno.EINVAL: 22, errno.EFBIG: 27, errno.ENOSPC: 28, errno.EROFS: 30,
    errno.EMLINK: 31, errno.ENAMETOOLONG: 63, errno.ENOTEMPTY: 66, errno.EDQUOT: 69, errno.ESTALE: 70, errno.EOPNOTSUPP: 10004,
}  # fmt: skip
STALE: Final = 70
BADHANDLE: Final = 10001
NOT_SYNC: Final = 10002
TOOSMALL: Final = 10005
SERVERFAULT: Final = 10006
BADTYPE: Final = 10007
