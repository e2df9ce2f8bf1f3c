"""Programs in a sandbox that attack the server: they cost their own session at most."""
