"""Benchmarks of the engine beside its peers, in the same run on the same machine.

``python -m benchmarks`` runs all parts and writes ``benchmarks/results``; ``python -m benchmarks engine`` runs one,
``--quick`` makes it small. Nothing here is a test: a time is reported, never asserted.
"""
