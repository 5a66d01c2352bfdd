"""The kernel's FUSE protocol on `/dev/fuse`, spoken directly: no libfuse, no binding, nothing to compile.

`session` mounts and runs the request loop, `dispatch` turns one request into one answer, `names`, `metadata`, `contents` and
`listing` hold the handlers, `notify` tells the kernel about remote changes, `mountpoint` and `mounting` deal with mounts.
"""
