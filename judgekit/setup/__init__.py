"""From a folder of files to an experiment: what each is taken for, what looks wrong; only `init` comes here."""
