"""The machinery shared by all benchmarks.

Kept free of imports: a peer's script imports ``benchmarks.harness.exchange`` from an environment
that may hold numpy and nothing else of ours.
"""
