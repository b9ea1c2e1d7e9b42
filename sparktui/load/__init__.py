"""DRIVING the server: the load process, its client and its prompts."""
