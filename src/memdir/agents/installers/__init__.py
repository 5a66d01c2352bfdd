"""Setting agent hosts up, and taking everything out again."""
