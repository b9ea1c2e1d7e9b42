"""Small widgets: each shows one value it is given and tells intents as messages."""
