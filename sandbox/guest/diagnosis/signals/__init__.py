"""Signs of a fault in what ran in the failing test, each of one kind: told only where they are rare in sound programs."""
