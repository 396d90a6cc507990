"""Requests as data: identity, transport, client, limits, store, executor, usage, prompts and verdicts."""
