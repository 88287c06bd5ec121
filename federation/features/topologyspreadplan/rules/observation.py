"""From Kubernetes objects to the inputs of planner and checker. Pure.

The objects come from caches: StatefulSets of the host in full, nodes and pods of members in the slim form of
`runtime/transforms.py`. A pod belongs to the shard whose StatefulSet controls it. Pods that have ended or are being
deleted do not count, as in kube-scheduler.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from federation.api.selectors import tolerates
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.conditions import find, is_true
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import STATEFUL_SETS, Object
from federation.features.topologyspreadplan.names import PLANNED, REASON_REFUSED
from federation.features.topologyspreadplan.rules.check import Distribution, Node, Pod
from federation.features.topologyspreadplan.rules.constraints import ZONE, ZONE_KEYS, Labels, pinned_zones
from federation.features.topologyspreadplan.rules.shardedservice import Mode, Service, Zone

_REPLICAS = 2
_DELIVERY_WAIT_S = 10.0
_ENDED = ("Succeeded", "Failed")
_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class ShardSet:
    """The StatefulSet of one shard on the host."""

    name: str
    labels: Mapping[str, str]
    """The label of its pods that no other shard has."""
    replicas: int
    pod_spec: Mapping[str, Any]
    uid: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Member:
    """The cached objects of one member: all nodes, the pods and StatefulSets of the plan's namespace."""

    cluster: str
    nodes: Sequence[Object]
    pods: Sequence[Object]
    stateful_sets: Sequence[Object] = ()


def shards_of(spec: Mapping[str, Any], stateful_sets: Iterable[Object]) -> list[ShardSet]:
    """Return the shards that the plan's selector matches, in the order of their numbers."""
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    label = spec.get("shardLabel") or ""
    found = []
    for stateful_set in stateful_sets:
        metadata, own = stateful_set["metadata"], stateful_set.get("spec") or {}
        template = own.get("template") or {}
        labels = (template.get("metadata") or {}).get("labels") or {}
        if metadata.get("deletionTimestamp") or not wanted or label not in labels:
            continue
        if all(labels.get(key) == value for key, value in wanted.items()):
            replicas = own.get("replicas")
            count = 1 if replicas is None else int(replicas)
            pod_spec = template.get("spec") or {}
            own_labels, annotations = {label: labels[label]}, metadata.get("annotations") or {}
            found.append(ShardSet(metadata["name"], own_labels, count, pod_spec, metadata.get("uid", ""), annotations))
    return sorted(found, key=lambda shard: (len(shard.name), shard.name))


def awaits_constraints(source: Object, plans: Iterable[Object], now: datetime) -> bool:
    """Return whether a new object is a StatefulSet that should get its constraints before it is delivered.

    That is so for ten seconds after its creation, if a plan selects it that is not refused and could write them.
    """
    if (source.get("apiVersion"), source.get("kind")) != (STATEFUL_SETS.api_version, STATEFUL_SETS.kind):
        return False
    pod_spec = ((source.get("spec") or {}).get("template") or {}).get("spec") or {}
    created = source["metadata"].get("creationTimestamp")
    if pod_spec.get("topologySpreadConstraints") or not created:
        return False
    if (now - from_rfc3339(created)).total_seconds() > _DELIVERY_WAIT_S:
        return False
    for plan in plans:
        status, name = plan.get("status") or {}, source["metadata"]["name"]
        planned = find(status.get("conditions"), PLANNED) or {}
        is_lacking = any(
            (each.get("rule"), each.get("domain")) == ("V10", name) for each in status.get("violations") or ()
        )
        is_refused = planned.get("reason") == REASON_REFUSED or is_lacking
        if not is_refused and shards_of(plan.get("spec") or {}, (source,)):
            return True
    return False


def zone_key_of(spec: Mapping[str, Any], members: Iterable[Member]) -> str:
    """Return the key of the zone label: that of the plan, else the first known one that a node has."""
    if key := spec.get("zoneKey"):
        return str(key)
    carried = {key for member in members for node in member.nodes for key in node["metadata"].get("labels") or ()}
    return next((key for key in ZONE_KEYS if key in carried), ZONE)


def labels_of(spec: Mapping[str, Any], shard: ShardSet, zone_key: str) -> Labels:
    """Return the labels for the constraints of a shard."""
    return Labels(spec["selector"]["matchLabels"], shard.labels, zone_key)


def service_of(spec: Mapping[str, Any], shards: Sequence[ShardSet], nodes: Sequence[Node] | None) -> Service:
    """Return the service of a plan. Without `nodes`, the numbers of nodes are those of the plan's spec.

    The largest StatefulSet gives the number of replicas, because the others are about to be scaled like it.
    """
    zones = []
    for zone in spec.get("zones") or ():
        found = [node for node in nodes or () if node.zone == zone["name"]]
        owners = {node.cluster for node in found}
        only = next(iter(owners)) if len(owners) == 1 else ""
        cluster = zone.get("cluster") or only
        local = [node for node in found if not cluster or node.cluster == cluster]
        count = int(zone.get("nodes") or 0) if nodes is None else len(local)
        zones.append(Zone(zone["name"], count, cluster, zone.get("weight")))
    declared = max((shard.replicas for shard in shards), default=_REPLICAS)
    return Service(
        zones=tuple(zones),
        shards=int(spec.get("shards") or len(shards)),
        replicas=int(spec.get("replicas") or declared or 1),
        mode=Mode(spec.get("mode") or Mode.STANDARD),
        node_max=spec.get("maxPodsPerNode"),
        zone_max=spec.get("maxPodsPerZone"),
        difference_max=spec.get("maxZoneDifference"),
    )


def distribution_of(
    members: Iterable[Member], namespace: str, shards: Sequence[ShardSet], zone_key: str
) -> Distribution:
    """Return the nodes with a zone, and the active pods of the shards."""
    numbers = {shard.name: number for number, shard in enumerate(shards)}
    tolerations = [each for shard in shards for each in shard.pod_spec.get("tolerations") or ()]
    nodes: list[Node] = []
    pods: list[Pod] = []
    for member in members:
        for node in member.nodes:
            zone = (node["metadata"].get("labels") or {}).get(zone_key)
            if zone:
                is_schedulable = _is_schedulable(node, tolerations)
                nodes.append(Node(member.cluster, node["metadata"]["name"], zone, is_schedulable))
        for pod in member.pods:
            number = _shard_of(pod, numbers, namespace)
            if number is not None and _is_active(pod):
                node_name = str((pod.get("spec") or {}).get("nodeName") or "")
                name, is_unschedulable = pod["metadata"]["name"], _is_unschedulable(pod)
                pods.append(Pod(member.cluster, name, number, node_name, is_unschedulable))
    return Distribution(tuple(nodes), tuple(pods))


def _shard_of(pod: Object, numbers: Mapping[str, int], namespace: str) -> int | None:
    if pod["metadata"].get("namespace", "") != namespace:
        return None
    owner = controller_of(pod)
    if owner is None or owner.get("kind") != "StatefulSet":
        return None
    return numbers.get(str(owner.get("name")))


def _is_active(pod: Object) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and (pod.get("status") or {}).get("phase") not in _ENDED


def _is_unschedulable(pod: Object) -> bool:
    condition = find((pod.get("status") or {}).get("conditions"), "PodScheduled")
    return condition is not None and condition.get("status") == "False"


def _is_schedulable(node: Object, tolerations: Sequence[Mapping[str, Any]]) -> bool:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    taints = [taint for taint in spec.get("taints") or () if taint.get("effect") in _BLOCKING]
    is_tolerated = all(any(tolerates(toleration, taint) for toleration in tolerations) for taint in taints)
    return is_true(status.get("conditions"), "Ready") and not spec.get("unschedulable") and is_tolerated


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of a service: its shards on the host, its pods in members, and the service for the planner."""

    shards: Sequence[ShardSet]
    members: Sequence[Member]
    distribution: Distribution
    service: Service
    zone_key: str


def observe(plan: Object, stateful_sets: Iterable[Object], members: Sequence[Member]) -> Observation:
    """Return the observation of a TopologySpreadPlan; `stateful_sets` are those of its namespace on the host."""
    spec, namespace = plan["spec"], plan["metadata"].get("namespace", "")
    shards, zone_key = shards_of(spec, stateful_sets), zone_key_of(spec, members)
    distribution = distribution_of(members, namespace, shards, zone_key)
    return Observation(shards, members, distribution, service_of(spec, shards, distribution.nodes), zone_key)


def held_zones(observation: Observation) -> dict[int, list[str]]:
    """Return the zones that shards keep in an assignment: those that they are pinned to, else those with their pods."""
    service, distribution = observation.service, observation.distribution
    allowed = {zone.name for zone in service.zones}
    zones = {(node.cluster, node.name): node.zone for node in distribution.nodes}
    held: dict[int, list[str]] = {}
    for number, shard in enumerate(observation.shards):
        pinned = [name for name in pinned_zones(shard.pod_spec, observation.zone_key) if name in allowed]
        if len(pinned) == service.replicas < len(allowed):
            held[number] = pinned
            continue
        used = [zones.get((pod.cluster, pod.node), "") for pod in distribution.pods if pod.shard == number]
        if found := [name for name in dict.fromkeys(used) if name in allowed]:
            held[number] = found
    return held


def outdated_pods(observation: Observation) -> dict[str, str]:
    """Return a message for each StatefulSet of which a member still runs pods of an earlier template."""
    sets = {shard.name for shard in observation.shards}
    found: dict[str, str] = {}
    for member in observation.members:
        for stateful_set in member.stateful_sets:
            name, status = stateful_set["metadata"]["name"], stateful_set.get("status") or {}
            old = int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)
            is_new = status.get("currentRevision") == status.get("updateRevision")
            if name in sets and old > 0 and not is_new:
                found[name] = f"{old} pods of {name} in {member.cluster} run with an earlier template"
    return found
