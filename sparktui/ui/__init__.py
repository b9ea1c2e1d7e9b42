"""The terminal app: Textual, a client of the socket; knows schema values only."""
