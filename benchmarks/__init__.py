"""Benchmarks: one module per table or figure of the papers.

A module here defines ``TITLE``, ``PAPER``, optionally ``NEEDS_DATA``, and ``run(ctx) -> Report``.
``python -m benchmarks list`` finds it by itself; see ``benchmarks.harness`` for the tools.
"""
