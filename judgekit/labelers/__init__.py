"""Labelers: interchangeable ways of saying how relevant a document is to a query. One file each."""
