"""Correlation of scores with quality, resampling, agreement, claims and the decision."""
