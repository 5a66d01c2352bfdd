"""What administrators ask for: keys and people, settings of containers, jobs, indexes, sessions.

Start with `accounts`.
"""
