"""The simulated Deployment controller: creates the new ReplicaSet, scales ReplicaSets and writes the status.

`rollout` computes the numbers. A reconcile makes one step of the rollout; the events of its own writes trigger the
next. Read `replicasets.py` for the pods.
"""

from federation.api.names import DEPLOYMENT_REPLICA_FAILURE
from federation.apimachinery import wellknown
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.conditions import find
from federation.apimachinery.errors import AlreadyExists, NotFound
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import DEPLOYMENTS, REPLICA_SETS, Object
from federation.runtime.controller import Key, Result
from federation.simulator.controllers import rollout
from federation.simulator.controllers.claiming import Dependents, on_dependent_change
from federation.simulator.controllers.memberparts import Member
from federation.simulator.controllers.revisions import compute_template_hash
from federation.simulator.controllers.rollout import ReplicaSetState

HASH_LABEL = "pod-template-hash"
_DONE = Result()


def _state(replica_set: Object) -> ReplicaSetState:
    status = replica_set.get("status") or {}
    return ReplicaSetState(
        replica_set["metadata"]["name"],
        int(replica_set["spec"].get("replicas", 1)),
        int(status.get("replicas", 0)),
        int(status.get("availableReplicas", 0)),
    )


class DeploymentController:
    """Reconciles the Deployments of one member."""

    def __init__(self, member: Member) -> None:
        self._client = member.client
        self._deployments = deployments = member.cache(DEPLOYMENTS)
        self._replica_sets = replica_sets = member.cache(REPLICA_SETS)
        self._clock = member.clock
        self.controller = member.controller("sim-deployment", self._reconcile)
        self._dependents = Dependents(member.client, replica_sets)
        deployments.add_handler(self._deployment_changed)
        replica_sets.add_handler(on_dependent_change(self.controller, "Deployment", deployments))

    def _deployment_changed(self, old: Object | None, new: Object | None) -> None:
        meta = (new or old or {})["metadata"]
        if old and new and old["metadata"].get("generation") == meta.get("generation"):
            return
        self.controller.enqueue(Key(meta["namespace"], meta["name"]))

    async def _reconcile(self, key: Key) -> Result:
        deployment = self._deployments.get(key.namespace, key.name)
        if deployment is None or "deletionTimestamp" in deployment["metadata"]:
            return _DONE
        await self._dependents.claim(deployment, DEPLOYMENTS)
        owned = sorted(self._dependents.owned(deployment), key=_revision)
        template_hash = compute_template_hash(deployment["spec"]["template"])
        new = next((s for s in owned if s["metadata"]["labels"].get(HASH_LABEL) == template_hash), None)
        if deployment["spec"].get("paused"):
            return _DONE
        if new is None:
            await self._create_replica_set(deployment, owned, template_hash)
            return _DONE
        try:
            await self._scale(deployment, new, [s for s in owned if s is not new])
            await self._write_status(deployment, new, owned)
        except NotFound:
            return _DONE  # deleted meanwhile; the informer's event triggers the next reconcile
        return _DONE

    async def _create_replica_set(self, deployment: Object, owned: list[Object], template_hash: str) -> None:
        spec, meta = deployment["spec"], deployment["metadata"]
        limits = rollout.compute_limits(deployment)
        running = sum(int(s["spec"].get("replicas", 1)) for s in owned)
        first = limits.desired if not running else max(0, min(limits.desired, limits.desired + limits.surge - running))
        if running and (spec.get("strategy") or {}).get("type") == "Recreate":
            first = 0
        template = spec["template"]
        labels = {**(template["metadata"].get("labels") or {}), HASH_LABEL: template_hash}
        replica_set = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{meta['name']}-{template_hash}",
                "namespace": meta["namespace"],
                "labels": labels,
                "annotations": {wellknown.DEPLOYMENT_REVISION: str(max(map(_revision, owned), default=0) + 1)},
                "ownerReferences": [controller_reference(deployment, "apps/v1", "Deployment")],
            },
            "spec": {
                "replicas": first,
                "selector": {"matchLabels": {**spec["selector"].get("matchLabels", {}), HASH_LABEL: template_hash}},
                "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
            },
        }
        try:
            created = await self._client.create(REPLICA_SETS, replica_set)
        except AlreadyExists:
            return  # the cache was stale; its next event triggers a reconcile
        await self._replica_sets.wait_for(created["metadata"]["resourceVersion"])

    async def _scale(self, deployment: Object, new: Object, old: list[Object]) -> None:
        limits = rollout.compute_limits(deployment)
        states = [_state(s) for s in old]
        if (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
            changes = rollout.plan_recreate(limits.desired, _state(new), states)
        else:
            changes = rollout.plan_rolling_update(limits, _state(new), states)
        namespace = deployment["metadata"]["namespace"]
        for name, replicas in changes.items():
            patched = await self._client.patch(
                REPLICA_SETS, name, {"spec": {"replicas": replicas}}, namespace=namespace
            )
            await self._replica_sets.wait_for(patched["metadata"]["resourceVersion"])
        await self._delete_history(deployment, old)

    async def _delete_history(self, deployment: Object, old: list[Object]) -> None:
        """Delete the oldest scaled-down ReplicaSets beyond `revisionHistoryLimit`."""
        limit = int(deployment["spec"].get("revisionHistoryLimit", 10))
        idle = [s for s in old if not s["spec"].get("replicas") and not (s.get("status") or {}).get("replicas")]
        for replica_set in idle[: max(0, len(idle) - limit)]:
            meta = replica_set["metadata"]
            try:
                await self._client.delete(REPLICA_SETS, meta["name"], meta["namespace"], uid=meta["uid"])
            except NotFound:
                continue

    async def _write_status(self, deployment: Object, new: Object, owned: list[Object]) -> None:
        meta = deployment["metadata"]
        current = [self._replica_sets.get(meta["namespace"], s["metadata"]["name"]) or s for s in owned]
        ready = sum(int((s.get("status") or {}).get("readyReplicas", 0)) for s in current)
        newest = _state(self._replica_sets.get(meta["namespace"], new["metadata"]["name"]) or new)
        now = to_rfc3339(self._clock.now())
        failures = (find((s.get("status") or {}).get("conditions"), DEPLOYMENT_REPLICA_FAILURE) for s in current)
        failure = next(filter(None, failures), None)
        status = rollout.compute_status(deployment, newest, [_state(s) for s in current], ready, now, failure)
        if status == deployment.get("status"):
            return
        live = deployment.get("status") or {}
        patch: Object = {"status": {**{k: None for k in live if k not in status}, **status}}
        revision = new["metadata"]["annotations"][wellknown.DEPLOYMENT_REVISION]
        if (meta.get("annotations") or {}).get(wellknown.DEPLOYMENT_REVISION) != revision:
            patch["metadata"] = {"annotations": {wellknown.DEPLOYMENT_REVISION: revision}}
        written = await self._client.patch(
            DEPLOYMENTS, meta["name"], patch, namespace=meta["namespace"], subresource="status"
        )
        await self._deployments.wait_for(written["metadata"]["resourceVersion"])


def _revision(replica_set: Object) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(wellknown.DEPLOYMENT_REVISION, "0"))
