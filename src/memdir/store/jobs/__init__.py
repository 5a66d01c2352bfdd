"""Work on documents that waits, runs, or was given up.

A change of the tree asks for work (`queue.enqueue`), a worker claims it and settles it. `embedding_queue` knows which passages
lack a vector, `reprocessing` asks for all of it again. Start with `queue`.
"""
