"""A container as a plain archive: writing one without holding it, and reading one from anybody without trusting it."""
