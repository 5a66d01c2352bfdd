"""How well the right lines are found: collections with judgements, and generated memories with known answers."""
