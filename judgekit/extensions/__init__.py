"""Judgekit's own plug-ins, which use only `judgekit` and `judgekit.extend`, like anybody's.

Each registers itself when imported. `judgekit.registry` imports all of them when one may be needed; nothing else does,
nor do they import each other.
"""
