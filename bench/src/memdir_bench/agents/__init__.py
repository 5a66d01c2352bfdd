"""`memdir bench agents`: how well, how fast and how surely the memories of coding agents are found."""
