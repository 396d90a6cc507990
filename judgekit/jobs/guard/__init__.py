"""The gate: did the answers get worse, and would these labels have noticed?"""
