"""`memdir bench scale`: how search grows from a thousand to a million passages."""
