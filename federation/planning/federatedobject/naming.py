"""Names of federated objects (docs/reference/names.md).

A name is derived from the source object's, so that a restart, another replica and KubeAdmiral all find the same
federated object. Names that are too long keep their beginning and end in a hash of the whole. Pure.
"""

import re
from functools import lru_cache

from federation.apimachinery.hashing import fnv1_32

NAME_LENGTH_MAX = 253

_FORBIDDEN = re.compile(rb"[^a-z0-9.-]")
_DOTS = re.compile(rb"\.\.+")


@lru_cache(maxsize=8192)
def federated_object_name(source_name: str, type_name: str) -> str:
    """Return the name of the federated object of a source object; `type_name` is its FederatedTypeConfig's name.

    Names that Kubernetes allows for the source but not for federated objects (RBAC: `system:foo`) are transformed and
    get the hash of the original, so that two sources never share a federated object.
    """
    transformed = _transform(source_name)
    name = f"{transformed}-{type_name}"
    if transformed != source_name:
        name = f"{name}-{fnv1_32(source_name)}"
    return bounded(name, NAME_LENGTH_MAX)


def bounded(name: str, length_max: int) -> str:
    """Return the name, if it is too long its beginning and a hash of the whole."""
    if len(name) <= length_max:
        return name
    digits = str(fnv1_32(name))
    return f"{name[: length_max - len(digits) - 1]}-{digits}"


def _transform(name: str) -> str:
    lowered = bytes(b + 32 if 65 <= b <= 90 else b for b in name.encode())
    return _DOTS.sub(b".", _FORBIDDEN.sub(b".", lowered)).decode("ascii")
