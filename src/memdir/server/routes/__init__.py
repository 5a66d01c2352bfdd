"""The routes of every API, one module for each family of calls. Thin: each reads its request and calls a service.

Requests of `api` come in from `server.http`; `server.services` and `server.agents` answer. Start with `files`.
"""
