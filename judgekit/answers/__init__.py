"""End-to-end answers: their requests, their normalisation and their quality."""
