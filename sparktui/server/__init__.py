"""RUNNING a server: spawn, readiness, stop, adopt."""
