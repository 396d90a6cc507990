"""What judgekit itself adds as a package of anybody's could: each registers what it is when it is imported.

`judgekit.registry` imports all of them when one may be needed; nothing else does, nor do they import each other.
"""
