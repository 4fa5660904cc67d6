"""Code that the benchmarks of semidefinite programs share."""
