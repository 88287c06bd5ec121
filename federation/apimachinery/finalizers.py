"""Finalizers of an object: who still has work to do before it may be removed. Pure.

Finalizers are a list, and a merge patch replaces lists, so a patch made of these results must be sent with the
resourceVersion of the object that they were made from.
"""

from federation.apimachinery.objectmeta import FOREGROUND, ORPHAN
from federation.apimachinery.resources import Object

__all__ = ("FOREGROUND", "ORPHAN")
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
DEFINITION_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
NAMESPACE_CONTENT = "kubernetes"
"""In `spec.finalizers` of a namespace."""


def has_finalizer(obj: Object, name: str) -> bool:
    """Return whether the object has the finalizer."""
    return name in (obj["metadata"].get("finalizers") or ())


def with_finalizers(obj: Object, *names: str) -> list[str]:
    """Return the object's finalizers and these: sorted when one was missing, else as they are."""
    held = list(obj["metadata"].get("finalizers") or ())
    return held if set(names) <= set(held) else sorted({*held, *names})


def without_finalizers(obj: Object, *names: str) -> list[str]:
    """Return the object's finalizers except these, in their order."""
    return [name for name in obj["metadata"].get("finalizers") or () if name not in names]
