"""Array libraries and devices, and the compiled kernels of the CPU."""
