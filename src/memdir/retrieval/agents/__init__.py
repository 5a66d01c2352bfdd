"""Agent memories by their words, the zero-AI ranking of five signals (start with `ranking`); and, in `need`, whether a prompt
needs one by its meaning."""
