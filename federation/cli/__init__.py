"""fedctl: exit codes and printing only; decisions and actions live in the layers below.

`main.py` is the entry point and turns every expected error into one line and a non-zero exit code.
"""
