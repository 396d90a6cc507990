"""Tasks beyond an experiment: each reads and checks its input, and returns a Job. None imports another."""
