"""The changes of a history of plans, as `fedctl plan` and `fedctl drain --dry-run` get them."""

import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from federation.api import names
from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_DISRUPTION_BUDGETS,
    DELIVERY_SUSPENSIONS,
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    PROJECTS,
)
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.planning.clusters.taintedits import drained
from federation.plans.documents import Document
from federation.plans.edits import Edit, Verb
from federation.plans.requestedchanges import RequestedChanges
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World

APPS = ("a", "b", "c")
CPU_MILLIS = 500
_DAYS = timedelta(days=30)


class Change(NamedTuple):
    """What is requested; `lost` is the cluster that is cut off to make it."""

    text: str
    requested: RequestedChanges
    lost: str = ""


class Changes:
    """Draws the changes of one history."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._chance = chance

    def all(self) -> Mapping[str, tuple[int, Callable[[], Awaitable[Change | None]]]]:
        """Return the kinds of changes with their weights."""
        return {
            "write": (7, self._write),
            "delete": (1, self._delete),
            "policy": (6, self._policy),
            "quota": (3, self._quota),
            "freeze": (2, self._freeze),
            "suspend": (2, self._suspend),
            "budget": (1, self._budget),
            "project": (2, self._project),
            "label": (2, self._label),
            "taint": (2, self._taint),
            "drain": (3, self._drain),
            "untaint": (3, self._untaint),
            "drop": (5, self._drop),
            "lose": (1, self._lose),
        }

    async def _write(self) -> Change:
        name, replicas, image = (self._chance.choice(APPS), self._chance.randrange(9), self._chance.randrange(3))
        return _written(f"{name} has {replicas} with image {image}", an_app(name, replicas, image))

    async def _delete(self) -> Change | None:
        name = self._chance.choice(APPS)
        if await self._world.find(DEPLOYMENTS, name) is None:
            return None
        return Change(f"delete {name}", RequestedChanges(deletions=[f"deployment/{name}"]))

    async def _policy(self) -> Change:
        policy = draw_policy(self._chance, sorted(self._world.members))
        return _written(f"policy {policy['spec']}", policy)

    async def _quota(self) -> Change:
        cpu = self._chance.choice(("1", "3", "6", "20"))
        return self._ours(FEDERATED_RESOURCE_QUOTAS, "team", {"overall": {"cpu": cpu}})

    async def _freeze(self) -> Change:
        changes = self._chance.choice((None, ["Moves"], ["Updates"], ["Moves", "Evictions"]))
        now = self._world.clock.now()
        windows = [{"start": to_rfc3339(now - timedelta(seconds=1)), "end": to_rfc3339(now + _DAYS)}]
        spec = {"reason": "the sale", "windows": windows, **({"changes": changes} if changes else {})}
        return self._ours(CHANGE_FREEZES, "sale", spec)

    async def _suspend(self) -> Change:
        until = to_rfc3339(self._world.clock.now() + _DAYS)
        spec = {"owner": "storage", "reason": "copies", "until": until, "clusters": [self._cluster()]}
        return self._ours(DELIVERY_SUSPENSIONS, "copy", spec)

    async def _budget(self) -> Change:
        return self._ours(CLUSTER_DISRUPTION_BUDGETS, "all", {"maxUnavailable": self._chance.randrange(2)})

    async def _project(self) -> Change:
        chosen = sorted(self._chance.sample(sorted(self._world.members), self._chance.randint(1, 3)))
        return self._ours(PROJECTS, "team", {"namespaces": ["default"], "clusters": {"names": chosen}})

    async def _label(self) -> Change | None:
        name = self._cluster()
        labels = (await self._world.user.get(FEDERATED_CLUSTERS, name))["metadata"].get("labels") or {}
        text = f"{name}=team-" if "team" in labels else f"{name}=team=shop"
        return Change(f"label {text}", RequestedChanges(labels=[text]))

    async def _taint(self) -> Change:
        text = f"{self._cluster()}=t=1:{self._chance.choice(('NoSchedule', 'NoExecute'))}"
        return Change(f"taint {text}", RequestedChanges(taints=[text]))

    async def _drain(self) -> Change:
        cluster = await self._world.user.get(FEDERATED_CLUSTERS, self._cluster())
        taints = list(drained(cluster["spec"].get("taints"), self._world.clock.now()))
        return self._tainted(f"drain {cluster['metadata']['name']}", cluster, taints)

    async def _untaint(self) -> Change | None:
        cluster = await self._world.user.get(FEDERATED_CLUSTERS, self._cluster())
        taints = cluster["spec"].get("taints") or []
        kept = [taint for taint in taints if taint["key"] in names.HEALTH_TAINTS]
        return self._tainted(f"uncordon {cluster['metadata']['name']}", cluster, kept) if kept != taints else None

    async def _drop(self) -> Change | None:
        kinds = (FEDERATED_RESOURCE_QUOTAS, CHANGE_FREEZES, DELIVERY_SUSPENSIONS, CLUSTER_DISRUPTION_BUDGETS, PROJECTS)
        found = [(each, item) for each in kinds for item in (await self._world.user.list(each)).items]
        if not found:
            return None
        resource, item = self._chance.choice(found)
        text = f"{resource.plural}.{resource.group}/{item['metadata']['name']}"
        return Change(f"delete {text}", RequestedChanges(deletions=[text]))

    async def _lose(self) -> Change | None:
        name = self._cluster()
        return Change(f"lose {name}", RequestedChanges(down=[name]), lost=name)

    def _cluster(self) -> str:
        return self._chance.choice(sorted(self._world.members))

    def _ours(self, resource: Resource, name: str, spec: Object) -> Change:
        metadata = {"name": name, **({"namespace": "default"} if resource.namespaced else {})}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
        return _written(f"{resource.kind} {spec}", body)

    @staticmethod
    def _tainted(text: str, cluster: Mapping[str, Any], taints: list[Object]) -> Change:
        name = cluster["metadata"]["name"]
        edit = Edit(text, Verb.MERGE, FEDERATED_CLUSTERS, "", name, {"spec": {"taints": taints}})
        return Change(text, RequestedChanges(edits=[edit]))


def _written(text: str, *manifests: Object) -> Change:
    return Change(text, RequestedChanges([Document(text, manifest) for manifest in manifests]))


def an_app(name: str, replicas: int, image: int) -> Object:
    """Return a Deployment that a quota counts."""
    deployment = a_deployment(name, replicas)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": f"web:{image}", "resources": {"requests": {"cpu": f"{CPU_MILLIS}m"}}}
    return deployment


def draw_policy(chance: random.Random, clusters: list[str]) -> Object:
    """Return a policy of all Deployments, with rules drawn by chance."""
    chosen = sorted(chance.sample(clusters, chance.randint(1, len(clusters))))
    spec: dict[str, Any] = {}
    if chance.random() < 0.2:
        spec["schedulingMode"] = "Duplicate"
    if chance.random() < 0.2:
        spec["maxClusters"] = chance.randint(1, 2)
    if chance.random() < 0.6:
        rules = {"policyContentChanged": True, "clusterLabelsChanged": True, "clusterJoined": True}
        avoids = chance.random() < 0.4
        spec["reschedulePolicy"] = {"rescheduleWhen": rules, "replicaRescheduling": {"avoidDisruption": avoids}}
    if chance.random() < 0.15:
        spec["suspension"] = {"scheduling": True, "reason": "ask"}
    if chance.random() < 0.2:
        spec["rollout"] = {"waves": [{"name": "canary", "clusters": [chosen[0]]}]}
    policy = a_policy({name: chance.randint(1, 3) for name in chosen}, **spec)
    how = chance.random()
    if how < 0.2:
        policy["spec"]["placement"] = []
    elif how < 0.3:
        policy["spec"]["clusterSelector"] = {"team": "shop"}
        del policy["spec"]["placement"]
    elif how < 0.5 and len(chosen) > 1:
        when = chance.choice(("Fallback", "Overflow"))
        own, rented = {"name": "own", "clusters": chosen[:1]}, {"name": "rented", "clusters": chosen[1:], "when": when}
        policy["spec"]["clusterGroups"] = [own, rented]
        del policy["spec"]["placement"]
    return policy
