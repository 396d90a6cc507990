"""An experiment: its file, the preparation before anything is sent, its run, and the input of its report."""
