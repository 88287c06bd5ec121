"""Run a rehearsal: the steps of a script and recorded arrivals, at their times, and the expectations."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from pathlib import Path
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import (
    ApiError,
    ClusterUnreachable,
    ConfigurationError,
    FederationError,
    Unauthorized,
    UnknownName,
)
from federation.apimachinery.nearestfile import unreadable
from federation.apimachinery.nearestname import did_you_mean
from federation.apimachinery.resources import Object, Resource
from federation.apimachinery.selectors import parse_label_selector
from federation.client.client import PatchType
from federation.planning.clusters.region import REGION_LABEL
from federation.planning.clusters.taintedits import cordoned, uncordoned
from federation.plans.documents import parse_manifests
from federation.twin.script import Expectation, Fault, Script, Step
from federation.twin.twin import Twin

_REGION_LABELS = (REGION_LABEL, "region")
_SPOT_LABELS: Mapping[str, str] = {
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "cloud.google.com/gke-spot": "true",
    "kubernetes.azure.com/scalesetpriority": "spot",
    names.CAPACITY_TYPE: "spot",
}
"""Labels of nodes of spot capacity, by provider."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A manifest that is applied at a time, in seconds from the beginning."""

    at_s: float
    manifest: Object


@dataclass(frozen=True, slots=True)
class Seen:
    """An expectation, and what its number was."""

    expectation: Expectation
    value: float

    @property
    def holds(self) -> bool:
        """Whether it was not more than expected."""
        return self.value <= self.expectation.most


@dataclass(frozen=True, slots=True)
class Happened:
    """A step that was taken, and what went wrong with it, "" for nothing."""

    at_s: float
    what: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Due:
    at_s: float
    what: str
    """"" for an arrival, of which there are too many to tell."""
    act: Callable[[], Awaitable[None]]


class Rehearsal:
    """One run of a script on a twin that has begun."""

    def __init__(self, twin: Twin, script: Script, arrivals: Sequence[Arrival] = ()) -> None:
        self._twin = twin
        self._script = script
        self._manifests = _read_files(script)
        self._arrivals = arrivals
        self.happened: list[Happened] = []
        self.seen: list[Seen] = []
        self.arrived = 0
        self.refused: list[str] = []
        """What the host said about arrivals that it refused."""

    async def run(self) -> None:
        """Take all steps; what a step's object is refused for is told, and the rehearsal goes on."""
        clock, begin_s = self._twin.clock, self._twin.clock.monotonic()
        looks = [each for each in self._script.expectations if each.at_s != float("inf")]
        steps = (
            *(_Due(step.at_s, str(step), partial(self._take, step)) for step in self._script.steps),
            *(_Due(each.at_s, "", partial(self._look, each)) for each in looks),
        )
        arrivals = (_Due(each.at_s, "", partial(self._arrive, each.manifest)) for each in self._all_arrivals())
        for due in merge(sorted(steps, key=_at), arrivals, key=_at):
            if due.at_s > self._script.end_s:
                break
            await self._twin.pass_time(max(0.0, begin_s + due.at_s - clock.monotonic()))
            problem = ""
            try:
                await due.act()
            except UnknownName:
                raise  # the script is wrong, and not the fleet
            except FederationError as error:
                problem = str(error)
            if due.what:
                self.happened.append(Happened(due.at_s, due.what, problem))
        await self._twin.pass_time(max(0.0, begin_s + self._script.end_s - clock.monotonic()))
        for each in self._script.expectations:
            if each.at_s == float("inf"):
                await self._look(each)

    def _all_arrivals(self) -> list[Arrival]:
        found = list(self._arrivals)
        for step in self._script.steps:
            if step.apply and step.times != 1:
                every_s = parse_duration(step.every)
                for number in range(step.times):
                    found += [
                        Arrival(step.at_s + number * every_s, renamed(manifest, f"-{number + 1}"))
                        for manifest in self._manifests[step.apply]
                    ]
        return sorted(found, key=_at)

    async def _arrive(self, manifest: Object) -> None:
        try:
            await self._apply(manifest)
            self.arrived += 1
        except ApiError as error:
            self.refused.append(f"{manifest.get('kind')} {manifest['metadata'].get('name')}: {error}")

    async def _look(self, expectation: Expectation) -> None:
        self.seen.append(Seen(expectation, numbers_of(self._twin)[expectation.number]))

    # -- steps

    async def _take(self, step: Step) -> None:
        if step.fault:
            await self._fail(step)
        elif step.cordon or step.uncordon:
            await self._taint(step.cordon or step.uncordon, is_cordoned=bool(step.cordon))
        elif step.apply:
            for manifest in self._manifests[step.apply] if step.times == 1 else ():
                await self._apply(manifest)
        elif step.delete:
            for manifest in self._manifests[step.delete]:
                resource, metadata = self._resource(manifest), manifest["metadata"]
                await self._twin.user.delete(resource, metadata["name"], self._namespace(resource, metadata))
        elif step.scale is not None:
            scale = step.scale
            resource = self._resource({"apiVersion": scale.api_version, "kind": scale.kind})
            body = {"spec": {"replicas": scale.replicas}}
            await self._twin.user.patch(
                resource, scale.name, body, patch_type=PatchType.MERGE, namespace=scale.namespace
            )

    async def _fail(self, step: Step) -> None:
        clusters = await self._clusters(step)
        if not clusters and step.fault != Fault.SPOT_ENDS:
            raise self._no_cluster(step.cluster or step.region or step.selector)
        members = self._twin.members
        for name in clusters:
            member = members[name]
            match step.fault:
                case Fault.CLUSTER_DIES | Fault.REGION_DIES:
                    member.line.problem = ClusterUnreachable("connection refused")
                case Fault.CERTIFICATE_EXPIRES:
                    member.line.problem = Unauthorized("x509: certificate has expired")
                case Fault.RECOVERS:
                    member.line.problem = None
                case Fault.NODES_LOST:
                    nodes = sorted(node["metadata"]["name"] for node in await member.nodes())
                    await member.lose_nodes(nodes[: step.nodes])
                case Fault.SPOT_ENDS:
                    await self._end_spot(name)
        silent = [name for name, member in members.items() if member.line.problem is not None]
        self._twin.observation.silence(silent)

    async def _end_spot(self, cluster: str) -> None:
        """Remove the nodes with a label of spot capacity; all nodes of a cluster that has it itself."""
        found = await self._twin.user.get(FEDERATED_CLUSTERS, cluster)
        is_spot = (found["metadata"].get("labels") or {}).get(names.CAPACITY_TYPE) == "spot"
        member = self._twin.members[cluster]
        lost = [node["metadata"]["name"] for node in await member.nodes() if is_spot or _is_spot(node)]
        await member.lose_nodes(lost)

    async def _clusters(self, step: Step) -> list[str]:
        matches = parse_label_selector(step.selector).matches if step.selector else None
        found = []
        for cluster in (await self._twin.user.list(FEDERATED_CLUSTERS)).items:
            name, labels = cluster["metadata"]["name"], cluster["metadata"].get("labels") or {}
            regions = {labels.get(label) for label in _REGION_LABELS}
            regions.add((cluster.get("status") or {}).get("region"))
            if name in self._twin.members and (
                (not step.cluster or name == step.cluster)
                and (not step.region or step.region in regions)
                and (matches is None or matches(labels))
            ):
                found.append(name)
        return found

    def _no_cluster(self, named: str) -> UnknownName:
        return UnknownName(f"{named} is no cluster of the fleet{did_you_mean(named, self._twin.members.keys())}")

    async def _taint(self, name: str, *, is_cordoned: bool) -> None:
        if name not in self._twin.members:
            raise self._no_cluster(name)
        cluster = await self._twin.user.get(FEDERATED_CLUSTERS, name)
        taints = (cluster.get("spec") or {}).get("taints") or ()
        wanted = cordoned(taints, self._twin.clock.now()) if is_cordoned else uncordoned(taints)
        body = {"spec": {"taints": list(wanted)}}
        await self._twin.user.patch(FEDERATED_CLUSTERS, name, body, patch_type=PatchType.MERGE)

    async def _apply(self, manifest: Object) -> None:
        resource, metadata = self._resource(manifest), manifest["metadata"]
        wanted = {**manifest, "metadata": {**metadata}}
        if resource.namespaced:
            wanted["metadata"]["namespace"] = self._namespace(resource, metadata)
        await self._twin.user.patch(
            resource,
            wanted["metadata"]["name"],
            wanted,
            patch_type=PatchType.APPLY,
            namespace=wanted["metadata"].get("namespace", ""),
            field_manager="twin",
            force=True,
        )

    def _resource(self, manifest: Mapping[str, Any]) -> Resource:
        group, _, version = str(manifest.get("apiVersion") or "").rpartition("/")
        info = self._twin.registry.kinds.served(group, version, str(manifest.get("kind") or ""))
        if info is None:
            raise ConfigurationError(f"{manifest.get('apiVersion')} {manifest.get('kind')}: the fleet has no such kind")
        return info.resource

    @staticmethod
    def _namespace(resource: Resource, metadata: Mapping[str, Any]) -> str:
        return str(metadata.get("namespace") or "default") if resource.namespaced else ""


def numbers_of(twin: Twin) -> dict[str, float]:
    """Return the numbers that expectations are about, as of now."""
    seen = twin.observation
    seen.add_up()
    return {
        "unplacedReplicas": seen.unplaced.now,
        "unplacedReplicaMinutes": seen.unplaced.total / 60,
        "waitingReplicas": seen.waiting.now,
        "waitingReplicaMinutes": seen.waiting.total / 60,
        "unreachableReplicas": seen.unreachable.now,
        "unreachableReplicaMinutes": seen.unreachable.total / 60,
        "movedReplicas": seen.moved_replicas,
        "holds": len(seen.holds),
        "rollbacks": sum(state == "RolledBack" for states in seen.rollouts.values() for _, state in states),
        "costPerHour": seen.hourly_cost(),
    }


def renamed(manifest: Object, suffix: str) -> Object:
    """Return a manifest with another name."""
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "name": f"{metadata['name']}{suffix}"}}


def _read_files(script: Script) -> dict[str, list[Object]]:
    """Return the manifests of all files that a script names; ConfigurationError if one cannot be read."""
    found = {}
    for name in sorted({step.apply or step.delete for step in script.steps if step.apply or step.delete}):
        found[name] = [document.manifest for document in _documents(script.folder / name)]
    return found


def _documents(file: Path) -> Iterable[Any]:
    try:
        return list(parse_manifests(str(file), file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: {unreadable(file, error)}; files are relative to the script") from error


def _is_spot(node: Object) -> bool:
    labels = node["metadata"].get("labels") or {}
    return any(labels.get(key) == value for key, value in _SPOT_LABELS.items())


def _at(each: _Due | Arrival) -> float:
    return each.at_s
