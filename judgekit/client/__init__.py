"""Turns requests into replies: transports, retries, limits, budgets, and the session that runs them in waves."""
