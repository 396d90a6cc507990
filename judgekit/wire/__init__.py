"""Endpoints, requests, replies, and the reading of responses."""
