"""KubeFed's kinds on this engine: the objects that stand for a federated one (`nativeform.py`), from its placement
(`selection.py`) and replica preference (`preference.py`), and its status (`propagationstatus.py`).
"""
