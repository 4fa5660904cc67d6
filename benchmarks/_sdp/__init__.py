"""What the benchmarks of semidefinite programs share."""
