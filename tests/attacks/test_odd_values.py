"""Whatever a client can store is input: odd values in any field are refused, or can be read, changed and deleted.

Every kind gets objects with one odd value each, in the status through its subresource. Refusals are Statuses, no
request is a server error, and the background controllers of the API server, which see all these objects, log no failure.
Nightly tests take a larger sample. All variants: `ODD_VALUES=1000000 pytest tests/attacks/test_odd_values.py`.
"""

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
from tests.support.hostile.oddvalues import variants
from tests.support.hostile.world import (
    ADMIN,
    KEPT,
    Answer,
    HostileRequest,
    Target,
    a_target,
    kept_definition,
    kept_objects,
)
from tests.support.rest import APPLY, MERGE, STRATEGIC, TABLE

from federation.apimachinery.clock import ManualClock, SystemClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.resources import Object
from federation.apiserver.auth.clusterroleaggregation import ClusterRoleAggregationController
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import WriteOptions

VARIANTS_MAX = int(os.environ.get("ODD_VALUES", "20"))
NIGHTLY_VARIANTS = 240
"""Objects per kind and field of its top level."""
JSON = "application/json"
_SHOWN_MAX = int(os.environ.get("ODD_SHOWN", "20"))
_METADATA = ("annotations", "labels", "managedFields", "ownerReferences")
DEFINITION = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **kept_definition()}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "R",
    "message": "m",
    "lastTransitionTime": "2020-01-01T00:00:00Z",
}
STATUSES: dict[str, Object] = {
    "Namespace": {"phase": "Active", "conditions": [{**CONDITION, "type": "NamespaceContentRemaining"}]},
    "CustomResourceDefinition": {
        "conditions": [{**CONDITION, "type": "Established"}, {**CONDITION, "type": "NamesAccepted"}],
        "acceptedNames": DEFINITION["spec"]["names"],
        "storedVersions": ["v1"],
    },
    "Pod": {
        "conditions": [{**CONDITION, "type": "PodScheduled"}],
        "containerStatuses": [{"name": "main", "image": "a", "imageID": "", "ready": True, "restartCount": 3}],
        "initContainerStatuses": [{"name": "main", "image": "a", "imageID": "", "ready": True, "restartCount": 3}],
    },
    "ResourceQuota": {"hard": {"pods": "10"}, "used": {"pods": "1"}},
    "HorizontalPodAutoscaler": {
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 50}}}]
    },
}
"""What a status holds when odd values are put into it."""


class Attack:
    """Sends the objects of one kind and collects what went wrong."""

    def __init__(self, target: Target, info: KindInfo, kept: Object, variants_max: int) -> None:
        self.target = target
        self.variants_max = variants_max
        self.info = info
        self.kept = kept
        self.problems: list[str] = []
        resource = info.resource
        root = f"/apis/{resource.group}" if resource.group else "/api"
        scope = f"/namespaces/{KEPT}" if resource.namespaced else ""
        self.collection = f"{root}/{resource.version}{scope}/{resource.plural}"

    async def run(self, root: str, rng: random.Random) -> None:
        """Store a sample of the variants of one field."""
        base = {**self.kept, "status": STATUSES.get(self.info.resource.kind, {"conditions": [CONDITION]})}
        found = list(variants(self.info.schema, base, root))
        for number, (about, obj) in enumerate(rng.sample(found, min(len(found), self.variants_max))):
            with structlog.testing.capture_logs() as logs:
                await self._one(f"odd-{root.lower()}-{number}", root, obj, about)
            for entry in logs:
                if entry["log_level"] in ("error", "critical"):
                    self.problems.append(f"{self.info.resource.kind} {about}: logged {entry}")

    async def _one(self, name: str, root: str, obj: Object, about: str) -> None:
        is_status = root == "status" and "status" in self.info.subresources
        odd, obj = obj, renamed(self.kept if is_status else obj, name)
        if (answer := await self._send("POST", "", obj, about)).status != 201:
            return
        path = f"/{obj['metadata']['name']}"
        if is_status:
            live = orjson.loads(answer.body)
            answer = await self._send("PUT", f"{path}/status", {**live, "status": odd["status"]}, about)
        if answer.status < 300:
            await self._use(path, about)
        await self._send("DELETE", path, None, about, must_work=True)
        for _ in range(20):
            await asyncio.sleep(0)

    async def _use(self, path: str, about: str) -> None:
        await self._send("GET", path, None, about, must_work=True)
        listed = f"?fieldSelector=metadata.name={path[1:]}&includeObject=Object"
        await self._send("GET", listed, None, about, accept=TABLE, must_work=True)
        head = {
            "apiVersion": self.info.resource.api_version,
            "kind": self.info.resource.kind,
            "metadata": {"name": path[1:]},
        }
        applied = {**head, "metadata": {"name": path[1:], "annotations": {"a": "b"}}}
        await self._send("PATCH", f"{path}?fieldManager=two&force=true", applied, about, type_=APPLY)
        await self._send("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, about, type_=MERGE)
        if not self.info.is_custom:
            await self._send("PATCH", path, {"metadata": {"labels": {"a": "c"}}}, about, type_=STRATEGIC)
        for subresource in self.info.subresources & {"status", "scale"}:
            await self._send("GET", f"{path}/{subresource}", None, about)
            await self._send(
                "PATCH", f"{path}/{subresource}", {"status": {"conditions": [CONDITION]}}, about, type_=MERGE
            )
        if self.info.resource.kind == "Pod":
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": path[1:]}}
            await self._send("POST", f"{path}/eviction?dryRun=All", eviction, about)
            binding = {**head, "apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "kept"}}
            await self._send("POST", f"{path}/binding", binding, about)
        if self.info.resource.kind == "PodDisruptionBudget":
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "kept"}}
            url = f"/api/v1/namespaces/{KEPT}/pods/kept/eviction?dryRun=All"
            await self._check(HostileRequest("POST", url, (("content-type", JSON),), orjson.dumps(eviction)), about)

    async def _send(
        self,
        method: str,
        path: str,
        body: Any,
        about: str,
        *,
        type_: str = JSON,
        accept: str = JSON,
        must_work: bool = False,
    ) -> Answer:
        content = b"" if body is None else orjson.dumps(body)
        headers = (("content-type", type_), ("accept", accept))
        request = HostileRequest(method, f"{self.collection}{path}", headers, content, ADMIN)
        return await self._check(request, about, must_work=must_work)

    async def _check(self, request: HostileRequest, about: str, *, must_work: bool = False) -> Answer:
        answer = await self.target.send(request)
        problem = answer.problem(request) or ("refused" if must_work and answer.status >= 400 else "")
        if problem:
            said = answer.body[:200].decode("utf-8", "replace")
            self.problems.append(
                f"{self.info.resource.kind} {about}: {problem}: {request.method} {request.target}: {said}"
            )
        return answer


def renamed(obj: Object, name: str) -> Object:
    """Return a copy of an object under another name."""
    if obj["kind"] == "CustomResourceDefinition":
        name = f"widgets.{name}.example.com"
        obj = (
            {**obj, "spec": {**obj["spec"], "group": name.partition(".")[2]}}
            if isinstance(obj.get("spec"), dict)
            else obj
        )
    return {**obj, "metadata": {**obj["metadata"], "name": name}}


@contextlib.asynccontextmanager
async def a_full_target(directory: Path) -> AsyncIterator[Target]:
    """Run a server with the loops that only a whole server has."""
    async with a_target(directory) as target:
        task = asyncio.create_task(ClusterRoleAggregationController(target.registry, SystemClock()).run())
        try:
            yield target
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.mark.slow("every field of every kind gets odd values, each of which is stored, read, changed and deleted")
@pytest.mark.parametrize("variants_max", [VARIANTS_MAX, pytest.param(NIGHTLY_VARIANTS, marks=pytest.mark.nightly)])
async def test_odd_values_of_any_field_do_no_harm(tmp_path: Path, variants_max: int) -> None:
    problems: list[str] = []
    rng = random.Random(1)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KEPT}}
    async with a_full_target(tmp_path) as target:
        for kept in (namespace, DEFINITION, *kept_objects()):
            group, _, version = kept["apiVersion"].rpartition("/")
            info = target.registry.kinds.by_kind(group, version, kept["kind"])
            attack = Attack(target, info, kept, variants_max)
            for root in attack.info.schema.properties:
                if root not in ("apiVersion", "kind", "metadata"):
                    await attack.run(root, rng)
            problems += attack.problems
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems[:_SHOWN_MAX])


async def test_a_client_cannot_keep_custom_resources_from_being_deleted_with_their_definition(tmp_path: Path) -> None:
    terminating = [{**CONDITION, "type": "Terminating"}, {"type": "Established", "status": "False"}]
    async with a_target(tmp_path) as target:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
        status = orjson.dumps({"status": {"conditions": terminating, "storedVersions": []}})
        request = HostileRequest("PATCH", f"{path}/status", (("content-type", MERGE),), status)
        written = orjson.loads((await target.send(request)).body)["status"]
        assert written["storedVersions"] == ["v1"]
        assert {"Established": "True", "Terminating": "True"}.items() <= {
            found["type"]: found["status"] for found in written["conditions"]
        }.items()
        assert (await target.send(HostileRequest("DELETE", path))).status == 200
        for _ in range(1000):
            await asyncio.sleep(0)
            if (await target.send(HostileRequest("GET", path))).status == 404:
                break
        assert not [key for key in await target.values() if key.startswith("/example.com/widgets/")]


async def test_a_terminating_namespace_with_odd_conditions_reports_its_content(tmp_path: Path) -> None:
    types = ("NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure", None)
    async with a_target(tmp_path) as target:
        path = f"/api/v1/namespaces/{KEPT}"
        status = orjson.dumps({"status": {"conditions": [{}, *({"type": name} for name in types)]}})
        assert (
            await target.send(HostileRequest("PATCH", f"{path}/status", (("content-type", MERGE),), status))
        ).status == 200
        held = orjson.dumps(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "h", "finalizers": ["a.b/c"]}}
        )
        assert (
            await target.send(HostileRequest("POST", f"{path}/configmaps", (("content-type", JSON),), held))
        ).status == 201
        with structlog.testing.capture_logs() as logs:
            await target.send(HostileRequest("DELETE", path))
            reported = False
            for _ in range(2000):
                await asyncio.sleep(0)
                answer = orjson.loads((await target.send(HostileRequest("GET", path))).body)
                found = (answer.get("status") or {}).get("conditions") or []
                if reported := any(entry.get("reason") == "SomeFinalizersRemain" for entry in found):
                    break
        assert reported
        assert not [entry for entry in logs if entry["log_level"] == "error"]


async def test_an_event_from_the_future_does_not_stop_the_expiry_of_others() -> None:
    clock = ManualClock()
    store = MemoryStore(clock=clock)
    first = Registry(store, clock=clock, entropy=SeededEntropy(1))
    await first.start()
    info = first.kinds.lookup("", "v1", "events")
    for name, time in (("future", "9999-12-31T23:59:59Z"), ("past", "0001-01-01T00:00:00Z")):
        event = {
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
            "lastTimestamp": time,
        }
        await first.create(info, "default", event, WriteOptions())
    restarted = Registry(store, clock=clock, entropy=SeededEntropy(2))
    running = asyncio.create_task(restarted.run())
    for _ in range(40):
        await clock.advance(100)
    assert not (await store.list("/core/events/")).entries
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
