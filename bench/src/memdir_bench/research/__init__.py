"""How research agents do: evidence against rounds and tokens, and whether citations bear what is written."""
