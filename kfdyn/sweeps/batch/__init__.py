"""The code around a recursion: rows of a batch shared out to lanes, or a single row."""
