"""What the server does beside requests and documents: housekeeping, deleting contents, indexes of exact search.

Nothing comes in but time and the store's own records. Start with `housekeeping`.
"""
