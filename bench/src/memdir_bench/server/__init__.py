"""`memdir bench server`: requests a second and their latency, on both stores, and what an item costs."""
