"""Records the calls, lines and changes of a run for `trace`, without rewriting the program."""
