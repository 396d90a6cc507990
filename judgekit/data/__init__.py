"""Tables, their validation, documents, the ordering of runs, readers and writers."""
