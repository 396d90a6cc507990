"""The labelers, one file each, called as its kind: `judgekit.catalog` finds them there."""
