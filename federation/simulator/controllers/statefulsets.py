"""The simulated StatefulSet controller: pods with ordinals and claims of their own, revisions, and the status.

It runs those of apps/v1 and those of apps.kruise.io, which can update pods in place. `ordinals` decides, `revisions.py`
keeps the history, `volumes.py` binds the claims. A reconcile makes one step; the events of its own writes trigger the
next.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from federation.apimachinery.errors import AlreadyExists, NotFound
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Object, Resource
from federation.runtime.controller import Key, Result
from federation.simulator.controllers import ordinals
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.claiming import on_dependent_change
from federation.simulator.controllers.memberparts import Member
from federation.simulator.controllers.ordinals import Scope
from federation.simulator.controllers.podupdates import update_pod
from federation.simulator.controllers.revisions import HASH_LABEL, REVISION_LABEL, Revisions, by_names, template_of

_DONE = Result()
_NAME_TAKEN_S = 1.0
"""Pause before a pod is tried again whose name another pod has; its names are fixed."""
_POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
_POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


class StatefulSetController:
    """Reconciles the StatefulSets of one member: of apps/v1, or `resource` of apps.kruise.io."""

    def __init__(self, member: Member, resource: Resource = STATEFUL_SETS) -> None:
        self._client = member.client
        self._stateful_sets = stateful_sets = member.cache(resource)
        self._claims = member.cache(PERSISTENT_VOLUME_CLAIMS)
        self._control = member.pods
        self._resource = resource
        self._revisions = Revisions(member, resource, HASH_LABEL)
        self._clock = member.clock
        name = "sim-statefulset" if resource == STATEFUL_SETS else "sim-advanced-statefulset"
        self.controller = member.controller(name, self._reconcile)
        stateful_sets.add_handler(podsof.on_spec_change(self.controller))
        member.cache(PODS).add_handler(on_dependent_change(self.controller, "StatefulSet", stateful_sets))

    async def _reconcile(self, key: Key) -> Result:
        stateful_set = self._stateful_sets.get(key.namespace, key.name)
        if stateful_set is None or podsof.is_terminating(stateful_set):
            return _DONE
        await self._control.claim(stateful_set, self._resource, may_take=partial(_is_member, key.name))
        revisions = await self._revisions.ensure_newest(stateful_set)
        by_name, current, update = by_names(revisions, stateful_set)
        scope, owned = Scope.of(stateful_set), self._control.owned(stateful_set)
        step = ordinals.plan_step(scope, owned, update, self._clock.now())
        new_pods = []
        for ordinal in step.create[: podsof.BURST_MAX]:
            await self._ensure_claims(stateful_set, ordinal)
            revision = current if scope.is_old(ordinal) else update
            new_pods.append(
                _to_stateful_pod(stateful_set, self._resource, template_of(by_name[revision]), ordinal, revision)
            )
        is_complete = await self._control.create(stateful_set, new_pods)
        condemned = [pod for pod in owned if pod["metadata"]["name"] in step.delete]
        await self._release_claims(stateful_set, scope, condemned)
        await self._control.delete(condemned)
        for pod in owned:
            if pod["metadata"]["name"] in step.update:
                await update_pod(self._control, pod, scope.update_policy, by_name, update, self._clock.now())
        if len(step.create) > podsof.BURST_MAX:
            self.controller.enqueue(key)
        owned = self._control.owned(stateful_set)
        now = self._clock.now()
        status = ordinals.compute_status(stateful_set, owned, current, update, now)
        await podsof.write_status(self._client, self._stateful_sets, self._resource, stateful_set, status)
        live = {current, update, status["currentRevision"], *map(ordinals.revision_of, owned)}
        await self._revisions.truncate(revisions, live, int(stateful_set["spec"].get("revisionHistoryLimit", 10)))
        wait_s = podsof.next_available_s(owned, scope.min_ready_s, now)
        return Result(requeue_after_s=wait_s if is_complete else _NAME_TAKEN_S)

    async def _ensure_claims(self, stateful_set: Object, ordinal: int) -> None:
        """Create the claims of the ordinal that do not exist; existing ones keep their data and are used again."""
        meta, spec = stateful_set["metadata"], stateful_set["spec"]
        for template in spec.get("volumeClaimTemplates") or ():
            name = _claim_name(template, meta["name"], ordinal)
            if self._claims.get(meta["namespace"], name) is not None:
                continue
            claim_meta = template["metadata"]
            labels = {**(claim_meta.get("labels") or {}), **spec["selector"].get("matchLabels", {})}
            claim: Object = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": name,
                    "namespace": meta["namespace"],
                    "labels": labels,
                    **({"annotations": claim_meta["annotations"]} if claim_meta.get("annotations") else {}),
                },
                "spec": template["spec"],
            }
            if _retention(stateful_set, "whenDeleted") == "Delete":
                reference = controller_reference(stateful_set, self._resource.api_version, self._resource.kind)
                claim["metadata"]["ownerReferences"] = [reference]
            try:
                await self._client.create(PERSISTENT_VOLUME_CLAIMS, claim)
            except AlreadyExists:
                continue

    async def _release_claims(self, stateful_set: Object, scope: Scope, condemned: list[Object]) -> None:
        """Let the claims of pods that a scale-down removes go with their pods, if the retention policy says so."""
        if _retention(stateful_set, "whenScaled") != "Delete":
            return
        meta = stateful_set["metadata"]
        for pod in condemned:
            ordinal = ordinals.ordinal_of(pod)
            if ordinal in scope.ordinals:
                continue  # deleted for an update, not for a scale-down
            references = [controller_reference(pod, PODS.api_version, PODS.kind)]
            for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
                name = _claim_name(template, meta["name"], ordinal)
                try:
                    await self._client.patch(
                        PERSISTENT_VOLUME_CLAIMS,
                        name,
                        {"metadata": {"ownerReferences": references}},
                        namespace=meta["namespace"],
                    )
                except NotFound:
                    continue


def _is_member(set_name: str, pod: Mapping[str, Any]) -> bool:
    """Return whether the pod has the name of one of the set's pods: no other can be taken."""
    name, _, ordinal = str(pod["metadata"]["name"]).rpartition("-")
    return name == set_name and ordinal.isdecimal()


def _retention(stateful_set: Mapping[str, Any], when: str) -> str:
    return str((stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get(when, "Retain"))


def _claim_name(template: Mapping[str, Any], set_name: str, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{set_name}-{ordinal}"


def _to_stateful_pod(
    stateful_set: Object, resource: Resource, template: Mapping[str, Any], ordinal: int, revision: str
) -> Object:
    set_name, spec = stateful_set["metadata"]["name"], stateful_set["spec"]
    name = f"{set_name}-{ordinal}"
    pod = podsof.to_pod(stateful_set, resource, template, name)
    identity = {_POD_NAME_LABEL: name, _POD_INDEX_LABEL: str(ordinal), REVISION_LABEL: revision}
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **identity}
    pod["spec"]["hostname"] = name
    if spec.get("serviceName"):
        pod["spec"]["subdomain"] = spec["serviceName"]
    claims = {
        each["metadata"]["name"]: _claim_name(each, set_name, ordinal)
        for each in spec.get("volumeClaimTemplates") or ()
    }
    podsof.mount_claims(pod, claims)
    return pod
