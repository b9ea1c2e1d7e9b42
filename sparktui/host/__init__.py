"""OWNING a run: the host process, its session, its experiment and its socket."""
