"""Agent memories by their words: the zero-AI ranking of five signals. No model is used here."""
