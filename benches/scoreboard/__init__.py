"""The scoreboard benchmark: every kernel against every peer; see `__main__`."""
