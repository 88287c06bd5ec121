"""The simulated CloneSet controller of OpenKruise: pods of its own without identity, their claims, and the status.

`cloning` decides, `podupdates.py` updates pods in place or by deletion, `revisions.py` keeps the history. A reconcile
makes one step; the events of its own writes trigger the next.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from federation.api.resources import CLONE_SETS
from federation.apimachinery.errors import AlreadyExists, NotFound
from federation.apimachinery.ownerreferences import controller_reference, controller_uids
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, PODS, Object
from federation.runtime.controller import Key, Result
from federation.simulator.controllers import cloning
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.claiming import BY_OWNER, on_dependent_change
from federation.simulator.controllers.cloning import Scope, Step
from federation.simulator.controllers.memberparts import Member
from federation.simulator.controllers.podupdates import update_pod
from federation.simulator.controllers.revisions import HASH_LABEL, REVISION_LABEL, Revisions, by_names, template_of

_DONE = Result()
_INSTANCE_LABEL = "apps.kruise.io/cloneset-instance-id"
"""On a pod and its claims: the suffix of the pod's name."""


class CloneSetController:
    """Reconciles the CloneSets of one member."""

    def __init__(self, member: Member) -> None:
        self._client = member.client
        self._clone_sets = clone_sets = member.cache(CLONE_SETS)
        self._claims = member.cache(PERSISTENT_VOLUME_CLAIMS)
        self._control = member.pods
        self._revisions = Revisions(member, CLONE_SETS, HASH_LABEL)
        self._clock = member.clock
        self._suffixes = member.suffixes
        self.controller = member.controller("sim-cloneset", self._reconcile)
        self._claims.add_index(BY_OWNER, controller_uids)
        clone_sets.add_handler(podsof.on_spec_change(self.controller))
        member.cache(PODS).add_handler(on_dependent_change(self.controller, CLONE_SETS.kind, clone_sets))

    async def _reconcile(self, key: Key) -> Result:
        clone_set = self._clone_sets.get(key.namespace, key.name)
        if clone_set is None or podsof.is_terminating(clone_set):
            return _DONE
        await self._control.claim(clone_set, CLONE_SETS)
        revisions = await self._revisions.ensure_newest(clone_set)
        by_name, current, update = by_names(revisions, clone_set)
        scope, active = Scope.of(clone_set), self._active(clone_set)
        step = cloning.plan_step(scope, active, update, self._clock.now())
        if await self._create(clone_set, step, by_name[current], by_name[update]):
            self.controller.enqueue(key)
        await self._control.delete([pod for pod in active if pod["metadata"]["name"] in step.delete])
        for pod in active:
            if pod["metadata"]["name"] in step.update:
                await update_pod(self._control, pod, scope.update_type, by_name, update, self._clock.now())
        await self._delete_claims(clone_set)
        active, now = self._active(clone_set), self._clock.now()
        status = cloning.compute_status(clone_set, active, current, update, now)
        await podsof.write_status(self._client, self._clone_sets, CLONE_SETS, clone_set, status)
        live = {current, update, status["currentRevision"], *map(cloning.revision_of, active)}
        await self._revisions.truncate(revisions, live, int(clone_set["spec"].get("revisionHistoryLimit", 10)))
        return Result(requeue_after_s=podsof.next_available_s(active, scope.min_ready_s, now))

    def _active(self, clone_set: Object) -> list[Object]:
        return [pod for pod in self._control.owned(clone_set) if podsof.is_active(pod)]

    async def _create(self, clone_set: Object, step: Step, current: Object, update: Object) -> bool:
        """Create the step's pods; return True if others must be created after this reconcile."""
        wanted = [update] * step.create_updated + [current] * step.create_old
        made = wanted[: podsof.BURST_MAX]
        instances = [self._suffixes.new() for _ in made]
        templates = clone_set["spec"].get("volumeClaimTemplates") or ()
        claims = [_to_claim(clone_set, template, instance) for instance in instances for template in templates]
        await asyncio.gather(*(self._create_claim(claim) for claim in claims))
        pods = [_to_pod(clone_set, revision, instance) for revision, instance in zip(made, instances, strict=True)]
        is_complete = await self._control.create(clone_set, pods)
        return not is_complete or len(wanted) > len(made)

    async def _create_claim(self, claim: Object) -> None:
        try:
            await self._client.create(PERSISTENT_VOLUME_CLAIMS, claim)
        except AlreadyExists:
            return

    async def _delete_claims(self, clone_set: Object) -> None:
        """Delete the claims whose pod is gone."""
        used = {_instance_of(pod) for pod in self._control.owned(clone_set)}
        for claim in self._claims.by_index(BY_OWNER, clone_set["metadata"]["uid"]):
            meta = claim["metadata"]
            if _instance_of(claim) in used or podsof.is_terminating(claim):
                continue
            try:
                await self._client.delete(PERSISTENT_VOLUME_CLAIMS, meta["name"], meta["namespace"], uid=meta["uid"])
            except NotFound:
                continue


def _instance_of(obj: Mapping[str, Any]) -> str:
    return str((obj["metadata"].get("labels") or {}).get(_INSTANCE_LABEL, ""))


def _claim_name(clone_set: Mapping[str, Any], template: Mapping[str, Any], instance: str) -> str:
    return f"{template['metadata']['name']}-{clone_set['metadata']['name']}-{instance}"


def _to_claim(clone_set: Object, template: Mapping[str, Any], instance: str) -> Object:
    labels = (template["metadata"].get("labels") or {}) | (clone_set["spec"]["selector"].get("matchLabels") or {})
    return {
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "metadata": {
            "name": _claim_name(clone_set, template, instance),
            "namespace": clone_set["metadata"]["namespace"],
            "labels": {**labels, _INSTANCE_LABEL: instance},
            "ownerReferences": [controller_reference(clone_set, CLONE_SETS.api_version, CLONE_SETS.kind)],
        },
        "spec": template["spec"],
    }


def _to_pod(clone_set: Object, revision: Object, instance: str) -> Object:
    template = template_of(revision)
    pod = podsof.to_pod(clone_set, CLONE_SETS, template, f"{clone_set['metadata']['name']}-{instance}")
    identity = {_INSTANCE_LABEL: instance, REVISION_LABEL: revision["metadata"]["name"]}
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **identity}
    claims = {
        each["metadata"]["name"]: _claim_name(clone_set, each, instance)
        for each in clone_set["spec"].get("volumeClaimTemplates") or ()
    }
    podsof.mount_claims(pod, claims)
    return pod
