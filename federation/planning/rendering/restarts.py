"""Whether an apply over an existing workload restarts its pods: whether it changes the pod template. Pure.

The first apply to an object that the federation did not write before adds and replaces fields, and removes none.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery import dotpaths
from federation.planning.rendering.drift import is_subset

_POD_TEMPLATE = ("spec", "template")


def changed_pod_fields(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> list[str]:
    """Return the fields of the pod template that the apply changes, as paths; [] if no pod restarts.

    Also the immutable selector counts: a different one is refused by the member.
    """
    found = []
    for path in (_POD_TEMPLATE, ("spec", "selector")):
        mine, its = dotpaths.get(wanted, path), dotpaths.get(live, path)
        if mine is not None and not is_subset(mine, its, field=path[-1]):
            found += sorted(_differing(mine, its, ".".join(path)))
    return found


def _differing(wanted: Any, live: Any, at: str) -> list[str]:
    """Return the deepest paths of objects that differ; a list counts as one field."""
    if not isinstance(wanted, Mapping) or not isinstance(live, Mapping):
        return [at]
    found: list[str] = []
    for key, value in wanted.items():
        if not is_subset({key: value}, live, field=at.rpartition(".")[2]):
            found += _differing(value, live.get(key), f"{at}.{key}")
    return found or [at]
