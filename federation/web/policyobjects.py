"""The objects that a policy applies to: `/federation/v1/policyobjects`, from the index behind the status of policies.

Permission to read a policy is no permission to know the names of other users' objects. So the user needs `get` on the
policy, and sees the objects of the kinds that he may `list`: in the namespace of the policy, or for a cluster-wide
policy in all namespaces, or in the one that the query names. The kinds that he may not list are named, as they are in
the policy's status. Federated objects that were written by hand have no object behind them; they need `list` on
federated objects too.
"""

import heapq
from collections.abc import Iterator
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from federation.apimachinery.errors import BadRequest, ServiceUnavailable
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.resources import Resource
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.planning.federatedobject.builder import source_key
from federation.planning.federatedobject.provenance import is_hand_written
from federation.runtime.controller import Key
from federation.runtime.federatedobjects import FederatedObjects, resource_of
from federation.scheduling.policyusage import POLICIES, ObjectKey, PolicyKey, PolicyUsage
from federation.web.requests import json_response, may_list, to_read

PATH = "/federation/v1/policyobjects"
_KINDS = {resource.kind: resource for resource in POLICIES}
_LIMIT_MAX = 500
_Name = Annotated[str, Query(min_length=1)]


class PolicyView:
    """Reads which objects a policy applies to from the caches of the controllers."""

    def __init__(self, objects: FederatedObjects, usage: PolicyUsage) -> None:
        self._objects = objects
        self._usage = usage

    def kinds_of(self, policy: PolicyKey) -> list[Resource]:
        """Return the kinds that the policy applies to; ServiceUnavailable while caches are incomplete."""
        if not self._objects.has_synced:
            raise ServiceUnavailable("the control plane is starting; try again in a few seconds")
        return sorted(self._usage.objects_of(policy), key=lambda resource: resource.group_resource)

    def keys_of(self, policy: PolicyKey, resource: Resource, *, with_hand_written: bool) -> Iterator[ObjectKey]:
        """Yield the keys of the policy's federated objects of the kind."""
        for key in self._usage.objects_of(policy).get(resource, ()):
            federated = self._objects.get(Key(*key))
            if federated is not None and (with_hand_written or not is_hand_written(federated)):
                yield key

    def identity_of(self, key: ObjectKey) -> dict[str, str]:
        """Return what names the object behind a cached federated object."""
        federated = self._objects.get(Key(*key))
        assert federated is not None
        api_version, kind, namespace, name = source_key(federated)
        type_ = self._objects.type_of(federated)
        plural = type_.resource.plural if type_ is not None else ""
        return {"apiVersion": api_version, "kind": kind, "plural": plural, "namespace": namespace, "name": name}


def add_routes(web: FastAPI, view: PolicyView) -> None:
    """Serve the objects of policies."""

    @web.get(PATH)
    async def policy_objects(
        request: Request,
        kind: _Name,
        name: _Name,
        namespace: str = "",
        within: Annotated[str, Query(alias="objectNamespace")] = "",
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = _LIMIT_MAX,
        after: Annotated[str, Query(alias="continue")] = "",
    ) -> Response:
        """Return a page of the objects that the user may list, and the kinds that he may not."""
        policy = _policy(kind, namespace, name)
        await request.scope[AUTHORIZE]([to_read(policy.resource, "get", namespace, name)], is_path_enough=False)
        scope = namespace or within
        visible: list[Resource] = []
        hidden: list[str] = []
        for resource in view.kinds_of(policy):
            if await may_list(request, resource, scope if resource.namespaced else ""):
                visible.append(resource)
            else:
                hidden.append(resource.group_resource)
        with_hand_written = await may_list(request, resource_of(Key(scope, "")), scope)
        keys = (
            (natural_key(f"{key[0]}/{key[1]}"), key)
            for resource in visible
            for key in view.keys_of(policy, resource, with_hand_written=with_hand_written)
            if not (within and resource.namespaced) or key[0] == within
        )
        last = natural_key(after)
        rows = heapq.nsmallest(limit + 1, (row for row in keys if row[0] > last))
        metadata = {"continue": "/".join(rows[limit - 1][1])} if len(rows) > limit else {}
        items = [view.identity_of(key) for _, key in rows[:limit]]
        body = {"kind": "PolicyObjectList", "metadata": metadata, "hiddenResources": hidden, "items": items}
        return json_response(200, body)


def _policy(kind: str, namespace: str, name: str) -> PolicyKey:
    resource = _KINDS.get(kind)
    if resource is None:
        raise BadRequest(f"kind: {kind} is not a kind of policy; there are {', '.join(_KINDS)}")
    if resource.namespaced != bool(namespace):
        raise BadRequest(f"namespace: a {kind} {'needs one' if resource.namespaced else 'has none'}")
    return PolicyKey(resource, namespace, name)
