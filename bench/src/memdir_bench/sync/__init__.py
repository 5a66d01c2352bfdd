"""`memdir bench sync`: how fast changes travel between mounts and the server, what they cost, and what doing nothing costs."""
