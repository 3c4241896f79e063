"""The scoreboard: every kernel beside every peer; see `__main__`."""
