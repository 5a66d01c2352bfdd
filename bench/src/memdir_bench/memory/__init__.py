"""Whether what is remembered of a life is true, current and the user's: `memdir bench memory`."""
