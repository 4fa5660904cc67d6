"""One problem written as another, and the way back: one pair a file."""
