"""JUDGING: batches to statistics to verdict to report. Pure."""
