"""Memories of coding agents: Markdown files below `/memory/`, and the records derived from them.

Start with `files` (the format), then `memories` (the records); `feed` is what an index follows.
"""
