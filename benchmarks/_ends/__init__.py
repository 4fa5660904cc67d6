"""Random instances of every problem, with what is known about how each must end."""
