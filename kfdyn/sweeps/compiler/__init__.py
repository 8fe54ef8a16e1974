"""Compile what a recursion wrote: LLVM text, object code kept on disk, and the function that Python calls."""
