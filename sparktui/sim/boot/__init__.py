"""What a boot prints, and whether it fails."""
