"""Requests through batch services or batch files, at half the price, within a day."""
