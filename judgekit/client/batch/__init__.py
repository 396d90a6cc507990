"""Requests asked by batch services or through batch files, at half the price, within a day."""
