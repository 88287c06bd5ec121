"""`fedctl replay`: `command.py` has the steps, `sources.py` reads records, `output.py` prints."""
