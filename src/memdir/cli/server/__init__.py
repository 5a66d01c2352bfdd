"""Commands for the memory server: running it, its keys, people, audit log, store and jobs.

Options come in; calls go to the server that runs, or to its database in this process (`admin_calls`). Start with `server`.
"""
