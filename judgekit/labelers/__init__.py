"""The labelers, one file each, and how they are built from their spellings."""
