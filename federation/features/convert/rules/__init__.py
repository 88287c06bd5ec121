"""Manifests of other federations as ours, for `fedctl convert`. Pure.

One module per source, each with `convert(manifests) -> Conversion`: what it does not know it returns unchanged. A field
that has no counterpart here is in the notes, so nothing is lost in silence. `fieldreader.py` sees to that.
"""
