"""xAFS: questions over made-up drives of 5 to 9,988 files, what they cost an agent with and without the mount."""
