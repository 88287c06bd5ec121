"""`fedctl plan` and `fedctl apply-plan`: read the world and the wishes, compute, print, keep, check, apply.

`command.py` is the way through; `manifests.py` and `wishes.py` read what is asked for, `edits.py` sends it (as a dry
run or for real), `reading.py` reads the world, `show.py` prints, `planfile.py` is what a plan file holds and whether it
still does. What would happen is decided in `scheduling/whatif`.
"""
