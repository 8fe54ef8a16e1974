"""How many digits a filter has left: what is refused, and what is warned of."""
