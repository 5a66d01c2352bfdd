"""Looking after a store: checking, backing up, giving space back. The same for both engines. Start with `check`."""
