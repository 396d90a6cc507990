"""Correlation of scores with quality, resampling, agreement and the verdict."""
