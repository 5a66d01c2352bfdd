"""What every room needs and no room owns: ids, time, paths, errors, limits, logging, SQLite. No opinion about memory."""
