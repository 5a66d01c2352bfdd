"""Documents, files, conversations, memories and their versions, as calls change and read them.

Every API has its own words (`documents`: `/v3`, `files`: `/v1`, `memories`: `/v4`), all change the one tree of
`store.tree`; `views` says what the answers look like. Start with `files`.
"""
