"""What rounding excuses, and what it forbids to confirm."""
