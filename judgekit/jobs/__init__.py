"""What goes beyond an experiment: each reads and checks what it needs, and returns a Job. None imports another."""
