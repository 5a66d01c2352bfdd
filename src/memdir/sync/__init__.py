"""Keeping a mount and a server equal without losing anything.

Intents of the filesystem come in (`push.intake`), changes of the server come in (`pull.puller`); for each path the pure
`planner` decides from three facts, and `push.pusher` or `pull.applier` does it. Start with `planner`, then `engine`.
"""
