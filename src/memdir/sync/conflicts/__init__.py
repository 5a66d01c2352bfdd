"""When both sides changed a file: merged line by line where that is safe, else kept beside each other.

Start with `merger`.
"""
