"""One call: arguments checked and bound, systems packed, the compiled recursion, and what it declines."""
