"""What sessions of agents left behind, read for what a later session should know: decisions, corrections, causes, commands.

`transcripts` reads what hosts write, `candidates` finds statements by rules, `sources` reads guide files, decision records
and the git log the same way, `run` hands what was found to the server, into the inbox. Start with `run`.
"""
