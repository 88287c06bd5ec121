"""Shared parts of all commands of `fedctl`: options, the run of a command, completion, contexts and printing.

`federation/cli` has the commands of the spine; commands of leaf features are in their folders. Every command line
imports `flags.py` and `execution.py`, so they import little.
"""
