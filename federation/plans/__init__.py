"""Plans of changes, with the rights of the user of a client.

`documents.py` and `requestedchanges.py` turn what a user asks for into writes, `inventory.py` reads the federation's
objects, `edits.py` sends writes (as a dry run or for real), `planner.py` computes a plan and applies it, and
`planfile.py` checks whether a plan is still valid. `plugincalls.py` connects the engine with remote plugins. The result
is computed in `scheduling/whatif`.
"""
