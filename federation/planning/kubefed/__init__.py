"""KubeFed's kinds on this engine: the objects that stand for a federated one (`nativeform.py`), from its placement
(`selection.py`) and replica preference (`preference.py`). `features/kubefed` keeps them, `fedctl convert` prints them.
"""
