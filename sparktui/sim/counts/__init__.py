"""What /metrics and the statistics lines say."""
