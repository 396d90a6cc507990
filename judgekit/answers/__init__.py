"""End-to-end answers and their quality."""
