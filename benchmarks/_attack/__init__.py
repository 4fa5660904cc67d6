"""The parts of `benchmarks.attack`, one file for each concern."""
