"""One method per file: each advances a factor and sees an objective and a domain only."""
