"""From the mount to the server: the queue, batches of operations, renames, and what becomes of what was sent.

Start with `pusher`; `queue` is what it takes its work from.
"""
