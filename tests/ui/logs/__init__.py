"""Log, findings and load slider."""
