"""The algorithms of the papers and their baselines, each readable beside its box."""
