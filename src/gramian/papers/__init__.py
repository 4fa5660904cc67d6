"""The algorithms of the papers and their baselines, in the notation of the papers."""
