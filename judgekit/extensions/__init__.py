"""Labelers, metrics and steps of judgekit's own that are written as anybody's are: on `judgekit` and `judgekit.extend`.

Each registers what it is when it is imported. `judgekit.registry` imports all of them when one may be needed; nothing
else does, nor do they import each other.
"""
