"""Replies by the identity of their requests, kept on disk."""
