"""From a folder of files to an experiment: the use of each file, and what looks wrong; only `init` uses this."""
