"""Storage of two members with the kinds that move volumes, and simulated controllers that carry content.

`Storage` stands for the disks of all members: what is written in the volume of a claim, and the snapshots that a shared
storage has by handle. Its controllers do what the snapshot controller, the external provisioner and VolSync do with
their objects, in the members' API servers. Their kinds are the projects' own definitions if these are in the folder
`FEDERATION_VOLUMES`, else definitions of the same names without a schema.

`Scene` is a StatefulSet of three that runs in the first of two members.

`Writer` is the application: it writes in each volume of a pod that runs, and reports what must never be seen: pods in
two clusters at once, and a pod that runs on anything but the newest content.
"""

import asyncio
import base64
import contextlib
import functools
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import yaml

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, PLACEMENT_HOLDS, PROPAGATION_POLICIES
from federation.apimachinery.errors import Conflict, NotFound
from federation.apimachinery.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    STATEFUL_SETS,
    Object,
    Resource,
)
from federation.featureapi.surroundings import GateTransport
from federation.features.volumemoves.rules.moverecord import RECORD, Phase, VolumeMove
from federation.features.volumemoves.rules.objects import CONTENTS, DESTINATIONS, SNAPSHOTS, SOURCES
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world
from tests.support.worldmember import Member

FOLDER = Path(os.environ.get("FEDERATION_VOLUMES", "~/.cache/federation/volumes")).expanduser()
"""`PLURAL.yaml` for each of the kinds."""
OF_SNAPSHOTS, OF_VOLSYNC = (SNAPSHOTS, CONTENTS), (SOURCES, DESTINATIONS)
_STEP_S = 1.0
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The definitions of VolSync have half a megabyte."""
_DRIVER = "shared.example.com"


@functools.cache
def definition_of(resource: Resource) -> Object:
    """Return the definition of the project, or one that accepts any object of the kind."""
    path = FOLDER / f"{resource.plural}.yaml"
    if path.is_file():
        found: Object = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
        return found
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    spec = {
        "group": resource.group,
        "names": {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "versions": [version],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": resource.group_resource,
            "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in without a schema"},
        },
        "spec": spec,
    }


async def install(members: Iterable[Member], *kinds: Resource) -> None:
    """Let the members serve the kinds."""
    for member in members:
        await member.registry.install_crds([definition_of(kind) for kind in kinds])


class Storage:
    """The content of all volumes, and the controllers of snapshots and VolSync in all members."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._written: dict[tuple[str, str], str] = {}
        """Content by cluster and name of a volume."""
        self._snapshots: dict[str, str] = {}
        """Content by handle."""
        self.is_stopped = False
        """Whether the controllers do nothing, as when their pods do not run."""
        self.errors = 0
        """How many of the next snapshots and synchronizations fail before they are tried again."""

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._world.clock.sleep(_STEP_S)
            if self.is_stopped:
                continue
            for member in list(self._world.members.values()):
                served = {each.group_resource for each in await self._served(member)}
                try:
                    if SNAPSHOTS.group_resource in served:
                        await self._snapshot(member)
                    if SOURCES.group_resource in served:
                        await self._replicate(member)
                except (Conflict, NotFound):
                    continue  # somebody changed it meanwhile; the next step looks again

    async def _served(self, member: Member) -> list[Resource]:
        return [
            each for each in (SNAPSHOTS, SOURCES) if member.registry.kinds.served(each.group, each.version, each.kind)
        ]

    async def read(self, cluster: str, claim: str) -> str | None:
        """Return the content of the volume of a claim, None without a volume."""
        member = self._world.members[cluster]
        found = await member.find(PERSISTENT_VOLUME_CLAIMS, claim)
        if found is None or not found["spec"].get("volumeName"):
            return None
        place = (cluster, found["spec"]["volumeName"])
        if place not in self._written and (begins := found["spec"].get("dataSource")):
            snapshot = await member.find(SNAPSHOTS, begins["name"])
            assert snapshot is not None, "its claim begins with a snapshot that is gone"
            content = await member.find(CONTENTS, snapshot["spec"]["source"]["volumeSnapshotContentName"])
            assert content is not None
            self._written[place] = self._snapshots[content["spec"]["source"]["snapshotHandle"]]
        return self._written.get(place, "")

    async def write(self, cluster: str, claim: str, content: str) -> None:
        """Write in the volume of a claim."""
        found = await self._world.members[cluster].admin.get(PERSISTENT_VOLUME_CLAIMS, claim, "default")
        self._written[cluster, found["spec"]["volumeName"]] = content

    def _fails(self) -> bool:
        self.errors -= 1
        return self.errors >= 0

    # -- snapshots

    async def _snapshot(self, member: Member) -> None:
        for claim in (await member.admin.list(PERSISTENT_VOLUME_CLAIMS, "default")).items:
            await self.read(member.name, claim["metadata"]["name"])  # what begins with a snapshot has its content
        for each in (await member.admin.list(SNAPSHOTS, "default")).items:
            if (each.get("status") or {}).get("readyToUse"):
                continue
            source = each["spec"]["source"]
            if self._fails():
                await _status(member, SNAPSHOTS, each, {"readyToUse": False, "error": {"message": "the disk is busy"}})
            elif claim := source.get("persistentVolumeClaimName"):
                await self._take(member, each, claim)
            else:
                await self._bind(member, each, source["volumeSnapshotContentName"])

    async def _take(self, member: Member, snapshot: Object, claim: str) -> None:
        """Take a snapshot of a claim, and make its content."""
        content = await self.read(member.name, claim)
        if content is None:
            return
        uid = snapshot["metadata"]["uid"]
        handle, name = f"handle-{uid}", f"snapcontent-{uid}"
        self._snapshots[handle] = content
        reference = {"kind": "VolumeSnapshot", "namespace": "default", "name": snapshot["metadata"]["name"], "uid": uid}
        if await member.find(CONTENTS, name) is None:
            volume = {"volumeHandle": f"volume-of-{claim}"}
            spec = {"deletionPolicy": "Delete", "driver": _DRIVER, "source": volume, "volumeSnapshotRef": reference}
            body = {"apiVersion": CONTENTS.api_version, "kind": CONTENTS.kind, "metadata": {"name": name}, "spec": spec}
            await member.admin.create(CONTENTS, body)
        made = await member.admin.get(CONTENTS, name)
        await _status(member, CONTENTS, made, {"snapshotHandle": handle, "readyToUse": True, "restoreSize": 1 << 30})
        status = {"boundVolumeSnapshotContentName": name, "readyToUse": True, "restoreSize": "1Gi"}
        await _status(member, SNAPSHOTS, snapshot, status)

    async def _bind(self, member: Member, snapshot: Object, name: str) -> None:
        """Bind a snapshot to content that exists, if the storage has its handle."""
        content = await member.find(CONTENTS, name)
        if content is None or content["spec"]["source"]["snapshotHandle"] not in self._snapshots:
            return
        reference = content["spec"]["volumeSnapshotRef"]
        assert (reference["namespace"], reference["name"]) == ("default", snapshot["metadata"]["name"])
        handle = content["spec"]["source"]["snapshotHandle"]
        await _status(member, CONTENTS, content, {"snapshotHandle": handle, "readyToUse": True, "restoreSize": 1 << 30})
        status = {"boundVolumeSnapshotContentName": name, "readyToUse": True, "restoreSize": "1Gi"}
        await _status(member, SNAPSHOTS, snapshot, status)

    # -- VolSync

    async def _replicate(self, member: Member) -> None:
        for each in (await member.admin.list(DESTINATIONS, "default")).items:
            if not ((each.get("status") or {}).get("rsyncTLS") or {}).get("address"):
                await self._listen(member, each)
        for each in (await member.admin.list(SOURCES, "default")).items:
            if (each.get("status") or {}).get("lastManualSync") != each["spec"]["trigger"]["manual"]:
                await self._send(member, each)

    async def _listen(self, member: Member, destination: Object) -> None:
        name = f"volsync-rsync-tls-{destination['metadata']['name']}"
        if await member.find(SECRETS, name) is None:
            key = base64.b64encode(f"psk of {destination['metadata']['uid']}".encode()).decode()
            metadata = {"name": name, "namespace": "default"}
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": metadata,
                "data": {"psk.txt": key, "other": key},
            }
            await member.admin.create(SECRETS, secret)
        address = f"{destination['metadata']['name']}.{member.name}.example.com"
        await _status(member, DESTINATIONS, destination, {"rsyncTLS": {"address": address, "keySecret": name}})

    async def _send(self, member: Member, source: Object) -> None:
        """Send a volume to the destination with the address, if both are there and have the same key."""
        spec = source["spec"]["rsyncTLS"]
        name, _, cluster = spec["address"].removesuffix(".example.com").rpartition(".")
        there = self._world.members[cluster]
        mine = await member.find(SECRETS, spec["keySecret"])
        destination = await there.find(DESTINATIONS, name)
        if there.line.mode != "up" or member.line.mode != "up" or mine is None or destination is None:
            return
        theirs = await there.admin.get(SECRETS, destination["status"]["rsyncTLS"]["keySecret"], "default")
        assert mine["data"]["psk.txt"] == theirs["data"]["psk.txt"]
        assert mine["data"].keys() == {"psk.txt"}
        content = await self.read(member.name, source["spec"]["sourcePVC"])
        claim = destination["spec"]["rsyncTLS"]["destinationPVC"]
        if content is None or await self.read(cluster, claim) is None:
            return
        if self._fails():
            failed = {"latestMoverStatus": {"result": "Failed", "logs": "connection reset"}}
            await _status(member, SOURCES, source, failed)
            return
        await self.write(cluster, claim, content)
        for at, resource, each in ((there, DESTINATIONS, destination), (member, SOURCES, source)):
            trigger = each["spec"]["trigger"]["manual"]
            status = {"lastManualSync": trigger, "latestMoverStatus": {"result": "Successful"}}
            await _status(at, resource, each, status)


async def _status(member: Member, resource: Resource, obj: Object, status: Object) -> None:
    metadata = obj["metadata"]
    body = {"status": status}
    await member.admin.patch(
        resource, metadata["name"], body, namespace=metadata.get("namespace", ""), subresource="status"
    )


class Writer:
    """The application: a pod that runs writes in its volume, and what must never be seen is reported."""

    def __init__(self, world: World, storage: Storage, name: str, replicas: int) -> None:
        self._world = world
        self._storage = storage
        self._name = name
        self.newest: dict[str, str] = {f"data-{name}-{ordinal}": "" for ordinal in range(replicas)}
        """The newest content by claim, in whichever cluster it was written."""
        self.count = 0
        self.problems: list[str] = []
        self.is_quiet = False
        """Whether it runs and writes nothing."""
        self.is_allowed_to_start_old = False
        """Whether pods may run on older content, because their user says so."""

    async def run(self) -> None:
        """Write and look until cancelled."""
        while True:
            await self._world.clock.sleep(_STEP_S / 2)
            await self._look()

    async def _look(self) -> None:
        running: dict[str, list[Object]] = {}
        for member in self._world.members.values():
            pods = (await member.admin.list(PODS, "default")).items
            if found := [pod for pod in pods if pod["metadata"]["name"].startswith(f"{self._name}-")]:
                running[member.name] = found
        if len(running) > 1:
            self.problems.append(f"pods in {sorted(running)} at once")
        for cluster, pods in running.items():
            for pod in pods:
                if (pod.get("status") or {}).get("phase") == "Running":
                    await self._serve(cluster, f"data-{pod['metadata']['name']}")

    async def _serve(self, cluster: str, claim: str) -> None:
        found = await self._storage.read(cluster, claim)
        if claim not in self.newest:
            self.problems.append(f"{claim} is used in {cluster}")
        elif found != self.newest[claim] and not self.is_allowed_to_start_old:
            self.problems.append(f"{claim} in {cluster} has {found!r}, and {self.newest[claim]!r} was written last")
        elif not self.is_quiet:
            self.count += 1
            self.newest[claim] = f"{cluster} {self.count}"
            await self._storage.write(cluster, claim, self.newest[claim])


async def ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Stop the tasks, and raise what ended one of them."""
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome


_KINDS = [{"apiVersion": "apps/v1", "kind": "StatefulSet"}]
CLAIMS = ["data-db-0", "data-db-1", "data-db-2"]


def a_database(replicas: int = 3) -> Object:
    """Return a StatefulSet with claims."""
    found = a_deployment("db", replicas)
    found["kind"] = "StatefulSet"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    found["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": spec}]}
    return found


class Scene(NamedTuple):
    """A world with a StatefulSet `db`, its storage, and the application in it."""

    world: World
    storage: Storage
    writer: Writer

    async def move(self) -> VolumeMove | None:
        """Return the record of its move."""
        return RECORD.of(await self.world.user.get(FEDERATED_OBJECTS, "db-statefulsets.apps", "default"))

    async def until_phase(self, *phases: Phase) -> VolumeMove:
        """Wait until its move is at one of these steps."""

        async def look() -> VolumeMove | None:
            move = await self.move()
            return move if move is not None and move.phase in phases else None

        found = await self.world.until(look, f"{phases}")
        assert found is not None
        return found

    async def ask(self, to: str, **wish: Any) -> None:
        """Do what `fedctl migrate` does."""
        annotations = {
            names.PLACEMENTS: orjson.dumps([{"cluster": to}]).decode(),
            names.MOVE_VOLUMES: orjson.dumps(wish).decode(),
        }
        await self.world.merge(STATEFUL_SETS, "db", {"metadata": {"annotations": annotations}})

    async def until_serves(self, cluster: str) -> None:
        """Wait until three pods run in the cluster, and have written there."""

        async def look() -> bool:
            found = await self.world.members[cluster].find(STATEFUL_SETS, "db")
            return found is not None and (found.get("status") or {}).get("readyReplicas") == 3

        await self.world.until(look, f"it runs in {cluster}")
        await self.world.pass_time(3)
        self.check()
        assert all(text.startswith(cluster) for text in self.writer.newest.values()), self.writer.newest

    def check(self) -> None:
        """Fail if what must never be seen was seen."""
        assert self.writer.problems == []

    async def approve(self) -> None:
        """Approve the only hold."""
        (hold,) = (await self.world.user.list(PLACEMENT_HOLDS)).items
        approval = {"approved": True, "reason": "it works", "by": "ops", "at": "2099-01-01T00:00:00Z"}
        await self.world.merge(PLACEMENT_HOLDS, hold["metadata"]["name"], {"spec": {"approval": approval}}, "")

    async def claims(self, cluster: str) -> list[str]:
        """Return the claims in a cluster."""
        listed = (await self.world.members[cluster].admin.list(PERSISTENT_VOLUME_CLAIMS, "default")).items
        return sorted(each["metadata"]["name"] for each in listed)

    async def made(self) -> list[str]:
        """Return what a move made in members, but claims."""
        found = []
        for member in self.world.members.values():
            for kind in (SNAPSHOTS, CONTENTS, SOURCES, DESTINATIONS):
                if member.registry.kinds.served(kind.group, kind.version, kind.kind) is not None:
                    found += [f"{member.name}: {each['kind']}" for each in (await member.admin.list(kind)).items
                              if each["metadata"]["name"].startswith("move-")]  # fmt: skip
        return found


@contextlib.asynccontextmanager
async def a_scene(*kinds: Resource, gates: GateTransport | None = None, **policy: Any) -> AsyncIterator[Scene]:
    """Run the StatefulSet in `east`; the members serve the kinds. At the end the writer must have no problem."""
    async with a_world(members=("east", "west"), toleration_s=5, gates=gates) as world:
        storage = Storage(world)
        writer = Writer(world, storage, "db", 3)
        await install(world.members.values(), *kinds)
        await world.create(
            PROPAGATION_POLICIES, a_policy({"east": 1}, maxClusters=1, resourceSelectors=_KINDS, **policy)
        )
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "east"}]}})
        await world.create(STATEFUL_SETS, a_database())
        tasks = [asyncio.create_task(each.run()) for each in (storage, writer)]
        scene = Scene(world, storage, writer)
        await scene.until_serves("east")
        try:
            yield scene
            scene.check()
        finally:
            await ended(tasks)
