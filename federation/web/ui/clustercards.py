"""FederatedClusters as cards: health, free room, version, taints, credentials. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.amounts import to_amount
from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.quantity import to_int_ceil, to_milli
from federation.planning.clusters.clustertaints import describe_taint
from federation.planning.failover.halts import halt_of

NO_REGION = "No region"
_LATE_S = 120.0
"""A token is renewed long before its end; one with less time left was not."""


@dataclass(frozen=True, slots=True)
class Room:
    """A resource of a cluster: amounts for people, and the used share in percent, None while unknown.

    `over` is what was requested beyond the total, "" if nothing was: pods of a node that has left, for example.
    """

    name: str
    free: str
    total: str
    used_percent: int | None
    over: str = ""


@dataclass(frozen=True, slots=True)
class ClusterCard:
    """One cluster. `health` is "ready", "limited", "lost" or "unknown"; `state` is the same for people."""

    name: str
    region: str
    health: str
    state: str
    message: str
    since: str
    version: str
    nodes: int | None
    rooms: tuple[Room, ...]
    taints: tuple[str, ...]
    labels: tuple[str, ...]


def to_card(cluster: Mapping[str, Any]) -> ClusterCard:
    """Return the card of a FederatedCluster."""
    metadata, status = cluster["metadata"], cluster.get("status") or {}
    found, resources = status.get("conditions"), status.get("resources") or {}
    health, state, message = _health(found)
    labels = metadata.get("labels") or {}
    return ClusterCard(
        name=metadata["name"],
        region=str(status.get("region") or NO_REGION),
        health=health,
        state=state,
        message=message,
        since=str((conditions.find(found, names.CLUSTER_READY) or {}).get("lastTransitionTime") or ""),
        version=str(status.get("kubernetesVersion") or ""),
        nodes=resources.get("schedulableNodes"),
        rooms=tuple(_room(resources, name, title) for name, title in (("cpu", "CPU"), ("memory", "Memory"))),
        taints=tuple(
            describe_taint(taint).removeprefix(names.TAINT_PREFIX)
            for taint in (cluster.get("spec") or {}).get("taints") or ()
        ),
        labels=tuple(f"{key}={value}" for key, value in sorted(labels.items())),
    )


def by_region(cards: Iterable[ClusterCard]) -> list[tuple[str, list[ClusterCard]]]:
    """Return the cards by region, regions and clusters by name; clusters without a region last."""
    regions: dict[str, list[ClusterCard]] = {}
    for card in sorted(cards, key=lambda card: natural_key(card.name)):
        regions.setdefault(card.region, []).append(card)
    return sorted(regions.items(), key=lambda item: (item[0] == NO_REGION, natural_key(item[0])))


def matches(card: ClusterCard, text: str, region: str, health: str) -> bool:
    """Return whether a card passes the filters; "" passes all. `text` is a part of the name, a label or a taint."""
    return (
        region in ("", card.region)
        and health in ("", card.health)
        and any(text in each for each in (card.name, *card.labels, *card.taints))
    )


@dataclass(frozen=True, slots=True)
class Concern:
    """Something about a cluster that needs attention: its kind, and a sentence."""

    cluster: str
    kind: str
    text: str


def concerns_of(cluster: Mapping[str, Any], now: datetime) -> list[Concern]:
    """Return what needs attention about a cluster."""
    card, found = to_card(cluster), []
    if card.health != "ready":
        found.append(Concern(card.name, card.state, card.message))
    if reason := halt_of(cluster):
        found.append(Concern(card.name, "Failover halts", reason))
    credential = (cluster.get("status") or {}).get("credential") or {}
    expires = parse_rfc3339(credential.get("expires"))
    left_s = _LATE_S if expires is None else (expires - now).total_seconds()
    if left_s < _LATE_S:
        when = "has expired" if left_s <= 0 else "expires within minutes"
        found.append(Concern(card.name, "Credentials", f"the token for this cluster {when} and was not renewed"))
    return found


def _health(found: Sequence[Mapping[str, Any]] | None) -> tuple[str, str, str]:
    for type_, state in ((names.CLUSTER_JOINED, "Not joined"), (names.CLUSTER_READY, "Not ready")):
        condition = conditions.find(found, type_)
        if condition is None:
            return "unknown", "Unknown", "the control plane has not checked it yet"
        if condition.get("status") != "True":
            return "lost", state, str(condition.get("message") or condition.get("reason") or "")
    rights = conditions.find(found, names.CLUSTER_AUTHORIZED)
    if rights is not None and rights.get("status") == "False":
        return "limited", "Limited rights", str(rights.get("message") or rights.get("reason") or "")
    return "ready", "Ready", ""


def _room(resources: Mapping[str, Any], name: str, title: str) -> Room:
    to_int = to_milli if name == "cpu" else to_int_ceil
    free, total = (
        None if (quantity := (resources.get(part) or {}).get(name)) is None else to_int(str(quantity))
        for part in ("available", "allocatable")
    )
    if free is None or not total:
        return Room(title, to_amount(name, free), to_amount(name, total), None)
    used = min(100, max(0, round(100 * (total - free) / total)))
    over = to_amount(name, -free) if free < 0 else ""
    return Room(title, to_amount(name, min(max(0, free), total)), to_amount(name, total), used, over)
