"""WHAT to run: YAML to frozen dataclasses to argv and environment."""
