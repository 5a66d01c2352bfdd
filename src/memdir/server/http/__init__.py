"""Everything between a socket and a route: limits, who is calling, what that opens, what is recorded.

Bytes come in (`protocol`), pass the guard (`guard`: Host, Origin, size, key, rate), and reach a route as a `Caller` (`access`).
Answers leave through `responses`. Start with `guard`.
"""
