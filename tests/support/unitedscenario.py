"""Play the scenarios of the UnitedDeployment vectors in a simulated member.

A scenario has an initial spec, steps that change it, and what must hold after each step. Workload controllers, nodes and
the scheduler are those of the simulator; the clock is virtual. Unknown keys are errors.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import KRUISE_GROUP
from federation.apimachinery import dotpaths
from federation.apimachinery.conditions import find
from federation.apimachinery.resources import NODES, PODS, Object, Resource
from federation.features.uniteddeployment.names import RESERVED_POD_LABEL, SUBSET_REVISION_LABEL
from federation.features.uniteddeployment.rules.subsetworkload import ordinal_of
from federation.features.uniteddeployment.rules.workloadkinds import KINDS, WorkloadKind
from federation.simulator.options import NodeShape
from tests.support.simulatedmember import Member, a_member, an_object
from tests.support.vectors import facts

UNITED = Resource(KRUISE_GROUP, "v1alpha1", "UnitedDeployment", "uniteddeployments")
TEMPLATES = {
    "StatefulSet": "statefulSetTemplate",
    "AdvancedStatefulSet": "advancedStatefulSetTemplate",
    "StatefulSet.apps.kruise.io": "advancedStatefulSetTemplate",
    "CloneSet": "cloneSetTemplate",
    "Deployment": "deploymentTemplate",
}
LABELS = {"app": "ud"}
PATIENCE_S = 180.0
CREATING = {"create", "replicas"}
"""A first step with one of these keys creates the object; before any other one it exists."""


async def play(initial: Mapping[str, Any], steps: list[Any], expected: list[Any]) -> None:
    """Play all steps; AssertionError says what did not happen after which step."""
    scenario = _Scenario(initial)
    async with a_member(scenario.nodes(), united_deployments=True) as member:
        custom = {kind.resource.group_resource for kind in KINDS if kind.is_custom}
        await member.registry.install_crds([crd for crd in crd_manifests() if crd["metadata"]["name"] in custom])
        if steps and not CREATING & (steps[0] or {}).keys():
            await scenario.apply(member, {})
            await member.pass_time(5)
        for number, (step, wanted) in enumerate(zip(steps, expected, strict=True)):
            await scenario.apply(member, step or {})
            try:
                await scenario.check(member, wanted or {})
            except AssertionError as error:
                raise AssertionError(f"step {number} {dict(step or {})}: {error}") from error


class _Scenario:
    def __init__(self, initial: Mapping[str, Any]) -> None:
        given = facts(
            initial,
            kind="",
            replicas=1,
            subsets=[],
            image="nginx:1.0",
            strategy=None,
            podsNeverReady=False,
            partitions=None,
        )
        reserves = bool(((given["strategy"] or {}).get("adaptive") or {}).get("reserveUnschedulablePods"))
        template = TEMPLATES[given["kind"] or ("Deployment" if reserves else "StatefulSet")]
        self.kind: WorkloadKind = next(kind for kind in KINDS if kind.template == template)
        self.closed = {
            each["name"] for each in given["subsets"] if each.get("unschedulable") or given["podsNeverReady"]
        }
        self.image = given["image"]
        self.env: list[Object] = []
        self.exists = False
        self.spec: Object = {
            "replicas": given["replicas"],
            "selector": {"matchLabels": LABELS},
            "topology": {"subsets": [self._subset(each) for each in given["subsets"]]},
        }
        if given["strategy"] is not None:
            self.spec["topology"]["scheduleStrategy"] = given["strategy"]
        if given["partitions"] is not None:
            self._set_partitions(given["partitions"])

    def nodes(self) -> list[NodeShape]:
        return [NodeShape("other", labels={"pool": "other"}), *map(self._node, self._open_subsets())]

    def _open_subsets(self) -> list[str]:
        return [each["name"] for each in self.spec["topology"]["subsets"] if each["name"] not in self.closed]

    def _node(self, subset: str) -> NodeShape:
        return NodeShape(f"node-{subset}", labels={"pool": subset}, cpu="64", memory="256Gi")

    def _subset(self, given: Mapping[str, Any]) -> Object:
        fields = {key: value for key, value in given.items() if key != "unschedulable" and value is not None}
        expression = {"key": "pool", "operator": "In", "values": [given["name"]]}
        return {"nodeSelectorTerm": {"matchExpressions": [expression]}, **fields}

    def _set_partitions(self, partitions: Mapping[str, Any]) -> None:
        self.spec["updateStrategy"] = {"type": "Manual", "manualUpdate": {"partitions": dict(partitions)}}

    def _manifest(self) -> Object:
        pods = {"containers": [{"name": "main", "image": self.image, "env": self.env}]}
        workload: Object = {"template": {"metadata": {"labels": LABELS}, "spec": pods}}
        if self.kind.is_stateful:
            workload["podManagementPolicy"] = "Parallel"
        template = {self.kind.template: {"metadata": {"labels": LABELS}, "spec": workload}}
        return an_object(UNITED, "sample", spec={**self.spec, "template": template})

    async def apply(self, member: Member, step: Mapping[str, Any]) -> None:
        """Change the spec as the step says, and write it."""
        subsets = self.spec["topology"]["subsets"]
        for key, value in step.items():
            name, dot, field = key.rpartition(".")
            match key:
                case "create":
                    pass
                case "replicas":
                    self.spec["replicas"] = value
                case "image":
                    self.image = value
                case "changeEnv":
                    self.env = [{"name": "CHANGED", "value": "1"}]
                case "partitions":
                    self._set_partitions(value)
                case "add":
                    added = value if isinstance(value, list) else [value]
                    subsets += [self._subset(each if isinstance(each, dict) else {"name": each}) for each in added]
                case "remove":
                    gone = value if isinstance(value, list) else [value]
                    subsets[:] = [each for each in subsets if each["name"] not in gone]
                case "clear all subset replicas":
                    for each in subsets:
                        each.pop("replicas", None)
                case "switchTemplateTo":
                    self.kind = next(kind for kind in KINDS if kind.template == value)
                case "createDuplicateOf":
                    await self._copy(member, value)
                case "fix":
                    await self._open(member, str(value).removesuffix(" nodes"))
                case "wait":
                    await member.pass_time(value, step_s=0.5)
                case _ if dot and any(each["name"] == name for each in subsets):
                    subset = next(each for each in subsets if each["name"] == name)
                    subset.pop(field, None) if value is None else subset.update({field: value})
                case _:
                    raise AssertionError(f"a step has the unknown key {key}")
        await self._write(member)

    async def _write(self, member: Member) -> None:
        manifest = self._manifest()
        for subset in self._open_subsets():
            if not await member.exists(NODES, f"node-{subset}"):
                await self._open(member, subset)
        if not self.exists:
            await member.create(UNITED, manifest)
            self.exists = True
            return
        current = await member.get(UNITED, "sample")
        await member.client.update(UNITED, {**current, "spec": manifest["spec"]})

    async def _open(self, member: Member, subset: str) -> None:
        """Add a node on which pods of the subset run."""
        self.closed.discard(subset)
        other = await member.get(NODES, "other")
        await member.create(NODES, {**other, "metadata": {"name": f"node-{subset}", "labels": {"pool": subset}}})

    async def _copy(self, member: Member, subset: str) -> None:
        (original,) = [each for each in await member.all(self.kind.resource) if _subset_of(each) == subset]
        kept = {key: original["metadata"][key] for key in ("labels", "ownerReferences", "namespace")}
        copy = {**original, "metadata": {**kept, "name": "copy"}, "status": {}}
        await member.create(self.kind.resource, copy)

    async def check(self, member: Member, wanted: Mapping[str, Any]) -> None:
        """Wait until everything holds that is expected after a step."""
        looks: dict[str, Callable[[Any], Awaitable[Any]]] = {
            "subsetReplicas": lambda _: self._by_subset(member, ("spec", "replicas")),
            "replicas": lambda _: _status_field(member, "replicas"),
            "readyReplicas": lambda _: _status_field(member, "readyReplicas"),
            "appliedPartition": lambda subsets: self._of(self._by_subset(member, self.kind.partition_path), subsets),
            "statusPartition": lambda subsets: self._of(_statuses(member, "partition"), subsets),
            "updatedPods": lambda subsets: self._of(self._updated(member), subsets),
            "ordinals": lambda _: _ordinals(member, None),
            "ordinalsLeft": lambda _: _ordinals(member, self.image),
            "workloads": lambda _: self._count(member, self.kind),
            "newKindWorkloads": lambda _: self._count(member, self.kind),
            "oldKindWorkloads": lambda _: self._count_others(member),
            "pods": lambda subsets: self._of(_pods(member, {}), subsets),
            "reserved": lambda subsets: self._of(_pods(member, {RESERVED_POD_LABEL: "true"}), subsets),
            "unschedulable": lambda subsets: self._of(_unschedulable(member), subsets),
            "image": lambda _: self._image(member),
            "graceful": _not_at_all,
        }
        unknown = {key for key, value in wanted.items() if value is not None} - looks.keys()
        assert not unknown, f"unknown expectations: {sorted(unknown)}"
        for key, value in wanted.items():
            if value is not None:
                await member.until_equal(lambda key=key, value=value: looks[key](value), value, PATIENCE_S)  # type: ignore[misc]  # defaults bind

    async def _of(self, found: Awaitable[Mapping[str, Any]], subsets: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was found, for the subsets that the expectation names."""
        by_subset = await found
        return {name: by_subset.get(name) or type(subsets[name])() for name in subsets}

    async def _by_subset(self, member: Member, path: tuple[str, ...]) -> dict[str, Any]:
        return {_subset_of(each): dotpaths.get(each, path) for each in await member.all(self.kind.resource)}

    async def _count(self, member: Member, kind: WorkloadKind) -> int:
        return len(await member.all(kind.resource))

    async def _count_others(self, member: Member) -> int:
        return sum([len(await member.all(kind.resource)) for kind in KINDS if kind != self.kind])

    async def _updated(self, member: Member) -> Counter[str]:
        updated = (await member.status(UNITED, "sample")).get("updatedRevision") or ""
        return await _pods(member, {SUBSET_REVISION_LABEL: updated})

    async def _image(self, member: Member) -> str:
        images = {
            each["spec"]["template"]["spec"]["containers"][0]["image"] for each in await member.all(self.kind.resource)
        }
        return images.pop() if len(images) == 1 else f"{sorted(images)}"


def _subset_of(obj: Mapping[str, Any]) -> str:
    return str((obj["metadata"].get("labels") or {}).get(names.SUBSET_NAME_LABEL, ""))


async def _pods(member: Member, labels: Mapping[str, str]) -> Counter[str]:
    found = [pod for pod in await member.all(PODS) if not pod["metadata"].get("deletionTimestamp")]
    return Counter(_subset_of(pod) for pod in found if labels.items() <= (pod["metadata"].get("labels") or {}).items())


async def _ordinals(member: Member, without_image: str | None) -> dict[str, list[int]]:
    """Return the ordinals of pods by subset, without those that have an image."""
    found: dict[str, list[int]] = {}
    for pod in await member.all(PODS):
        if pod["spec"]["containers"][0]["image"] != without_image:
            found.setdefault(_subset_of(pod), []).append(ordinal_of(pod["metadata"]["name"]))
    return {subset: sorted(ordinals) for subset, ordinals in found.items()}


async def _status_field(member: Member, field: str) -> int:
    return (await member.status(UNITED, "sample")).get(field) or 0


async def _statuses(member: Member, field: str) -> dict[str, Any]:
    entries = (await member.status(UNITED, "sample")).get("subsetStatuses") or ()
    return {entry["name"]: entry.get(field) for entry in entries}


async def _unschedulable(member: Member) -> dict[str, bool]:
    found = await _statuses(member, "conditions")
    marks = {name: find(conditions, names.SUBSET_SCHEDULABLE) for name, conditions in found.items()}
    return {name: mark is not None and mark["status"] == "False" for name, mark in marks.items()}


async def _not_at_all(_: Any) -> bool:
    """Return how gracefully another kind of template replaces the workloads."""
    return False
