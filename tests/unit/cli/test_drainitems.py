"""What is in a cluster that is drained, and whether the cluster is drained with it."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.cli.drainitems import item_of
from federation.planning.failover.evictionrecord import StayReason

TYPES = {type_.resource.kind: type_ for type_ in map(from_config, default_type_configs())}
POD = {"containers": [{"name": "c"}]}


def federated(kind: str, reason: StayReason | None, **spec: Any) -> dict[str, Any]:
    """An object in east, that stays for the reason."""
    stays = {} if reason is None else {"stays": {"east": {"reason": reason, "message": "because"}}}
    template = {"apiVersion": TYPES[kind].resource.api_version, "kind": kind, "metadata": {"name": "it"}, "spec": spec}
    return {
        "metadata": {"name": "it", "namespace": "shop", "annotations": {names.EVICTION: orjson.dumps(stays).decode()}},
        "spec": {
            "template": template,
            "placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}]}],
        },
    }


@pytest.mark.parametrize(
    ("kind", "reason", "spec", "is_expected"),
    [
        ("StatefulSet", StayReason.STATE, {"replicas": 3, "template": {"spec": POD}}, False),
        ("StatefulSet", StayReason.STATE, {"replicas": 0, "template": {"spec": POD}}, True),
        ("Deployment", StayReason.NEVER, {"replicas": 1, "template": {"spec": POD}}, False),
        ("Deployment", StayReason.NO_ROOM, {"replicas": 0, "template": {"spec": POD}}, False),
        ("DaemonSet", StayReason.NEVER, {"template": {"spec": POD}}, False),
        ("ConfigMap", StayReason.NEVER, {}, True),
        ("PersistentVolumeClaim", StayReason.KEPT, {}, True),
        ("ConfigMap", StayReason.NO_ROOM, {}, False),
    ],
)
def test_a_cluster_is_drained_with_what_stays_by_design_unless_it_has_pods(
    kind: str, reason: StayReason, spec: dict[str, Any], is_expected: bool
) -> None:
    item = item_of(federated(kind, reason, **spec), TYPES[kind], "east")
    assert (item.stay, item.is_expected) == ("because", is_expected)


def test_what_may_leave_is_counted_with_its_pods() -> None:
    item = item_of(federated("Deployment", None, replicas=2, template={"spec": POD}), TYPES["Deployment"], "east")
    assert (item.replicas, item.stay, item.has_pods) == (2, "", True)
