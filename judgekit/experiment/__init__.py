"""An experiment: its file, what is prepared before anything is sent, its run, and what the report shows of it."""
