"""The answer metrics, one file each; see `judgekit.answers.quality`."""
