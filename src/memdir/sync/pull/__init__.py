"""From the server to the mount: the feed, its application to the tree, and comparing everything when the feed is not enough.

Start with `puller`.
"""
