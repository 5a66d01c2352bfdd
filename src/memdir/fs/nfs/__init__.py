"""NFS version 3 over TCP on 127.0.0.1 (RFC 1813): the same filesystem where there is no FUSE. Start with `session`."""
