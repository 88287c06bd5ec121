"""fedctl: parse the command line, print results, set exit codes. Decisions and actions live in the layers below.

`main.py` defines the commands and turns every expected error into one line and a non-zero exit code.
"""
