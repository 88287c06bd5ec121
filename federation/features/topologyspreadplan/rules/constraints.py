"""The scheduling constraints of one StatefulSet of a service, in the form of a pod template. Pure.

All shards have the same hard and soft topology spread constraints, over the pods of the whole service. The node
affinity names the zones of the shard, the pod anti-affinity keeps the pods of the shard apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.features.topologyspreadplan.rules.shardedservice import Skews

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ZONE_KEYS = (ZONE, "failure-domain.beta.kubernetes.io/zone")
"""The label keys of a node's zone, the current one first."""
_HARD, _SOFT = "DoNotSchedule", "ScheduleAnyway"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that constraints refer to: of all pods of the service, of the pods of the shard, and of zones."""

    service: Mapping[str, str]
    shard: Mapping[str, str]
    zone_key: str = ZONE


def build_constraints(labels: Labels, zones: Sequence[str], skews: Skews) -> dict[str, Any]:
    """Return `affinity` and `topologySpreadConstraints` of a pod; `zones` are those that the shard may use."""
    is_multi_zone = skews.zone is not None
    domain_key = labels.zone_key if is_multi_zone else HOSTNAME
    in_zones = {"key": labels.zone_key, "operator": "In", "values": list(zones)}
    apart = {"labelSelector": {"matchLabels": {**labels.service, **labels.shard}}, "topologyKey": domain_key}
    spread = [_constraint(labels, HOSTNAME, skews.node, _HARD)]
    if skews.zone is not None:
        spread.append(_constraint(labels, labels.zone_key, skews.zone, _HARD))
    spread += [
        _constraint(labels, key, 1, _SOFT) for key in ((HOSTNAME, labels.zone_key) if is_multi_zone else (HOSTNAME,))
    ]
    return {
        "affinity": {
            "nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [in_zones]}]}},
            "podAntiAffinity": {_REQUIRED: [apart]},
        },
        "topologySpreadConstraints": spread,
    }


def _constraint(labels: Labels, key: str, max_skew: int, action: str) -> dict[str, Any]:
    return {
        "labelSelector": {"matchLabels": dict(labels.service)},
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": action,
    }


def pinned_zones(pod_spec: Mapping[str, Any], zone_key: str) -> tuple[str, ...]:
    """Return the zones that the required node affinity of a pod names, () without such an expression."""
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for expression in term.get("matchExpressions") or ():
            if expression.get("key") == zone_key and expression.get("operator") == "In":
                return tuple(expression.get("values") or ())
    return ()


def has_constraints(pod_spec: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a pod template has these constraints; the order of spread constraints does not matter.

    Fields that other managers set beside ours do not count as a difference.
    """
    present = {_spread_key(each): each for each in pod_spec.get("topologySpreadConstraints") or ()}
    is_spread = all(_has(present.get(_spread_key(each)), each) for each in wanted["topologySpreadConstraints"])
    return is_spread and _has(pod_spec.get("affinity"), wanted["affinity"])


def _spread_key(constraint: Mapping[str, Any]) -> tuple[Any, Any]:
    return constraint.get("topologyKey"), constraint.get("whenUnsatisfiable")


def _has(present: Any, wanted: Any) -> bool:
    """Return whether every field of `wanted` has its value in `present`; lists are compared as a whole."""
    if isinstance(wanted, Mapping):
        return isinstance(present, Mapping) and all(_has(present.get(key), value) for key, value in wanted.items())
    return bool(present == wanted)
