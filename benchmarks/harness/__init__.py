"""Tools shared by all benchmarks.

No imports here: peers import ``benchmarks.harness.exchange`` in an environment without gramian.
"""
