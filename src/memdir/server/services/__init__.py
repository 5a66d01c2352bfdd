"""What the routes do, once: every wire (v1, v3, v4) calls these functions."""
