"""ControllerRevisions: the history of pod templates that StatefulSets and DaemonSets of a simulated member keep.

A revision stores one pod template in the form of Kubernetes' own controllers (`data.spec.template` with `$patch:
replace`), so that `kubectl rollout history` and `kubectl rollout undo` work. The newest has the highest `revision`.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from federation.apimachinery.errors import AlreadyExists, NotFound
from federation.apimachinery.ownerreferences import controller_reference, controller_uids
from federation.apimachinery.resources import CONTROLLER_REVISIONS, Object, Resource
from federation.client.client import PatchType
from federation.simulator.controllers.claiming import Dependents
from federation.simulator.controllers.memberparts import Member
from federation.simulator.controllers.pods import NAME_ALPHABET

HASH_LABEL = "controller.kubernetes.io/hash"
REVISION_LABEL = "controller-revision-hash"
"""On pods: the name (StatefulSet) or hash (DaemonSet) of their revision."""


def compute_template_hash(template: Mapping[str, Any]) -> str:
    """Return the hash of a pod template: stable across processes, safe in names and labels."""
    digest = hashlib.blake2b(orjson.dumps(template, option=orjson.OPT_SORT_KEYS), digest_size=10).digest()
    return "".join(NAME_ALPHABET[byte % len(NAME_ALPHABET)] for byte in digest)


def template_of(revision: Mapping[str, Any]) -> Object:
    """Return the pod template that a revision stores."""
    template = dict(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return template


def by_names(revisions: Sequence[Object], owner: Mapping[str, Any]) -> tuple[dict[str, Object], str, str]:
    """Return the revisions by name, and the names of the current one, as the status has it, and of the newest."""
    by_name = {each["metadata"]["name"]: each for each in revisions}
    newest = revisions[-1]["metadata"]["name"]
    current = (owner.get("status") or {}).get("currentRevision", "")
    return by_name, current if current in by_name else newest, newest


class Revisions:
    """The ControllerRevisions of the workloads of one kind. `hash_label` is the label that holds the hash."""

    def __init__(self, member: Member, resource: Resource, hash_label: str) -> None:
        self._client = member.client
        self._revisions = member.cache(CONTROLLER_REVISIONS)
        self._resource = resource
        self._hash_label = hash_label
        self._dependents = Dependents(member.client, self._revisions)

    def hash_of(self, revision: Mapping[str, Any]) -> str:
        """Return the hash in the revision's labels."""
        return str(revision["metadata"]["labels"][self._hash_label])

    async def ensure_newest(self, owner: Object) -> list[Object]:
        """Make the owner's template its newest revision and return all of them, oldest first."""
        await self._dependents.claim(owner, self._resource)
        known = sorted(self._dependents.owned(owner), key=_number)
        wanted = {**owner["spec"]["template"], "$patch": "replace"}
        equal = next((each for each in reversed(known) if each["data"]["spec"]["template"] == wanted), None)
        if equal is None:
            return [*known, await self._create(owner, wanted, _number(known[-1]) + 1 if known else 1)]
        if equal is not known[-1]:  # a roll-back: the old revision becomes the newest
            patched = await self._client.patch(
                CONTROLLER_REVISIONS,
                equal["metadata"]["name"],
                {"revision": _number(known[-1]) + 1},
                patch_type=PatchType.MERGE,
                namespace=equal["metadata"]["namespace"],
            )
            await self._revisions.wait_for(patched["metadata"]["resourceVersion"])
            return [*(each for each in known if each is not equal), patched]
        return known

    async def _create(self, owner: Object, template: Object, number: int) -> Object:
        meta = owner["metadata"]
        digest = compute_template_hash(template)
        revision: Object = {
            "apiVersion": CONTROLLER_REVISIONS.api_version,
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": {
                "name": f"{meta['name']}-{digest}",
                "namespace": meta["namespace"],
                "labels": {**(template.get("metadata") or {}).get("labels", {}), self._hash_label: digest},
                **({"annotations": dict(meta["annotations"])} if meta.get("annotations") else {}),
                "ownerReferences": [controller_reference(owner, self._resource.api_version, self._resource.kind)],
            },
            "data": {"spec": {"template": template}},
            "revision": number,
        }
        try:
            created = await self._client.create(CONTROLLER_REVISIONS, revision)
        except AlreadyExists:  # by an earlier run whose event has not arrived, or left by a deleted owner
            found = await self._client.get(CONTROLLER_REVISIONS, revision["metadata"]["name"], meta["namespace"])
            if controller_uids(found) != [meta["uid"]]:
                raise
            created = found
        await self._revisions.wait_for(created["metadata"]["resourceVersion"])
        return created

    async def truncate(self, revisions: list[Object], live: Collection[str], limit: int) -> None:
        """Delete the oldest revisions beyond the limit; those whose name or hash is in `live` stay."""
        idle = [each for each in revisions if not {each["metadata"]["name"], self.hash_of(each)} & set(live)]
        for revision in idle[: max(0, len(idle) - limit)]:
            meta = revision["metadata"]
            try:
                await self._client.delete(CONTROLLER_REVISIONS, meta["name"], meta["namespace"], uid=meta["uid"])
            except NotFound:
                continue


def _number(revision: Mapping[str, Any]) -> int:
    return int(revision["revision"])
