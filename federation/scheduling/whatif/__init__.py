"""What would happen if: a world, changes, and what the control plane would make of them; the library of `fedctl plan`.

`world.py` holds the objects, `changes.py` makes hypothetical ones, `concern.py` finds the federated objects that a
change is about, `walk.py` takes one through its pipeline with the controllers' own planners, `compute.py` does all of
it and `result.py` is the answer. Pure, as the engine is: remote plugins are asked by whoever drives `compute`.
"""
