"""Small exports that real tools wrote, and the scripts that make the tools write them."""
