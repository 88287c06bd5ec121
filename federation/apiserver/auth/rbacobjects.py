"""RBAC objects as the index and the aggregation of ClusterRoles read them.

The bytes of a role are parsed once: both of them read every ClusterRole, and light members, of which one process runs
up to 1,000, share the bytes of the default roles.
"""

from functools import lru_cache
from typing import NamedTuple

import orjson

from federation.apimachinery.resources import Object
from federation.apiserver.auth.policyrules import PolicyRule, to_rules

_BYTES_MAX = 16 * 1024
"""The largest role that is kept parsed after its reader is gone; anybody who may write roles chooses their size."""
_KEPT_MAX = 128
"""Roles that are kept; a new server has about 80."""


class Parsed(NamedTuple):
    """A role or a binding, and the rules of a role.

    Roles have no managed fields. They are shared, so nobody may change them.
    """

    obj: Object
    rules: tuple[PolicyRule, ...] = ()


def parse_role(value: bytes) -> Parsed:
    """Return the role of these bytes."""
    return _kept(value) if len(value) <= _BYTES_MAX else _parse(value)


def parse_binding(value: bytes) -> Parsed:
    """Return the binding of these bytes."""
    return Parsed(orjson.loads(value))


def _parse(value: bytes) -> Parsed:
    obj: Object = orjson.loads(value)
    obj["metadata"].pop("managedFields", None)
    return Parsed(obj, to_rules(obj.get("rules") or ()))


_kept = lru_cache(maxsize=_KEPT_MAX)(_parse)
