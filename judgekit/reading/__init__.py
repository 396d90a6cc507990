"""Prompts, and what a reply to one says."""
