"""The only HTTP caller of the memory server.

Typed calls come in (`http`), answers of `api` go out, and `errors` has a class for each thing that a caller does about
a failure. Which server is meant is decided in `credentials`; `local` finds or starts this user's own. Start with
`http`.
"""
