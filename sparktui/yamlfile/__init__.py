"""Strict YAML files: keys from a table, every problem with file and line."""
