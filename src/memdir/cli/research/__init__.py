"""`memdir research` and its subcommands."""
