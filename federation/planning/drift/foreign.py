"""Fields that somebody in a member has set and that keep an object of ours from running as it is wanted there. Pure.

The federation writes its own fields and leaves those of others alone, so a Deployment that was paused in a member, or
whose pods got another node selector there, stays so, and a rollout waits for it for ever. Only what can have that
effect is looked at: whether pods are made, from which template, and on which nodes. Objects in caches have no
managedFields, so a field counts as another's if the applied configuration, which must be the newest one, lacks it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from federation.planning.drift.fields import FIELDS_MAX
from federation.planning.rendering.drift import pair_items

_STOPPING = frozenset(
    (
        "affinity",
        "hostNetwork",
        "minReadySeconds",
        "nodeName",
        "nodeSelector",
        "partition",
        "paused",
        "priorityClassName",
        "readinessGates",
        "resourceClaims",
        "runtimeClassName",
        "schedulerName",
        "schedulingGates",
        "serviceAccountName",
        "suspend",
        "topologySpreadConstraints",
    )
)
"""Names of fields that decide whether, and where, pods run."""
_LISTS = frozenset(("containers", "initContainers", "volumes"))
"""Lists in which a further item can keep a pod from starting."""
_WITHIN = frozenset(("spec", "template", "jobTemplate", "updateStrategy", "rollingUpdate", "strategy", "nodeSelector"))
"""Fields in which they are."""
_NAME_LENGTH_MAX = 100


def foreign_fields(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the first such fields, as people write them: `spec.template.spec.nodeSelector.zone`."""
    found = _within(wanted.get("spec"), live.get("spec"), "spec")
    return tuple(name for name, _ in zip(found, range(FIELDS_MAX), strict=False))


def describe_foreign(fields: tuple[str, ...]) -> str:
    """Return a sentence about them, "" for none."""
    return f"somebody set {', '.join(fields)} there, which the federation leaves alone" if fields else ""


def _within(wanted: Any, live: Any, name: str) -> Iterator[str]:
    if not isinstance(live, Mapping):
        return
    held = wanted if isinstance(wanted, Mapping) else {}
    for key in sorted(live):
        path = f"{name}.{key[:_NAME_LENGTH_MAX]}"
        if key in _WITHIN and key in held:
            yield from _within(held[key], live[key], path)
        elif key in _LISTS and isinstance(live[key], list):
            yield from _items(held.get(key), live[key], key, path)
        elif live[key] and key not in held and (key in _STOPPING or name.endswith(".nodeSelector")):
            yield path


def _items(wanted: Any, live: list[Any], field: str, name: str) -> Iterator[str]:
    """Yield the items of a list that is a map and that the wanted one lacks."""
    wanted = wanted if isinstance(wanted, list) else []
    known = [id(held) for _, held in pair_items(wanted, live, field)]
    if wanted and not known:
        return
    for item in live:
        if isinstance(item, Mapping) and id(item) not in known:
            yield f"{name}[{str(item.get('name'))[:_NAME_LENGTH_MAX]}]"
