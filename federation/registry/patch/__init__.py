"""The three ways to change an object by a document: JSON patch, merge patch, strategic merge patch. Pure.

All three return a new value that shares its unchanged parts with the input (copy on write) and never change an input.
Server-side apply, the fourth way, is `registry/apply.py`.
"""

from federation.registry.patch.jsonpatch import json_patch
from federation.registry.patch.mergepatch import merge_patch
from federation.registry.patch.strategic import strategic_merge_patch

__all__ = ["json_patch", "merge_patch", "strategic_merge_patch"]
