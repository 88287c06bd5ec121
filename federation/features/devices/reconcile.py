"""Write what the claims of an object's pods ask for into the annotation that the scheduler reads.

An object waits until all of its claims are on the host and read. The annotation is made of the claims' templates only,
so a crash at any line loses nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.errors import AlreadyExists, Conflict, NotFound
from federation.apimachinery.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from federation.planning.clusters.deviceclaims import (
    CLAIM,
    CLAIMS,
    DEVICE_GROUP,
    KINDS,
    TEMPLATE,
    ClaimError,
    Claims,
    DeviceRequest,
    requests_in,
)
from federation.planning.typederivation import derive_built_in
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.host import Host
from federation.scheduling.podrequest import claims_named

WRITER = "deviceclaims"
_SELECTORS_MAX = 16
"""Selectors of all claims of one object: each is evaluated for every kind of device of every cluster."""
_RESOURCES = {CLAIM: RESOURCE_CLAIMS, TEMPLATE: RESOURCE_CLAIM_TEMPLATES}


class Reconciler:
    """Records the claims of one object at a time."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def reconcile(self, key: Key) -> Result:
        """Write the annotation of one object if its claims changed."""
        objects = self._host.objects
        federated = objects.get(key)
        type_ = objects.type_of(federated) if federated is not None else None
        if federated is None or type_ is None:
            return DONE
        named = claims_named(federated["spec"]["template"], type_)
        claims = await self._read(key.namespace, named) if named else None
        if claims == CLAIMS.of(federated):
            return DONE
        try:
            await objects.patch(key, federated, {"metadata": {"annotations": CLAIMS.entry(claims)}}, writer=WRITER)
        except (Conflict, NotFound):
            return DONE  # its event enqueues it again
        return DONE

    async def _read(self, namespace: str, named: Sequence[str]) -> Claims:
        requests: dict[str, tuple[DeviceRequest, ...]] = {}
        for ref in named:
            kind, _, name = ref.partition("/")
            await self._federate(kind)
            source = self._host.objects.of_source(DEVICE_GROUP, KINDS[kind], namespace, name)
            if source is None:
                return Claims(problem=f"{KINDS[kind]} {name} does not exist in namespace {namespace}; create it")
            try:
                requests[ref] = requests_in(source["spec"]["template"])
            except ClaimError as error:
                return Claims(problem=f"{KINDS[kind]} {name}: {error}")
        count = _selector_count(requests)
        if count > _SELECTORS_MAX:
            return Claims(problem=f"its claims have {count} selectors, of which at most {_SELECTORS_MAX} are evaluated")
        return Claims(requests)

    async def _federate(self, kind: str) -> None:
        """Create the configuration of a kind of claims, which then follow their workloads."""
        resource = _RESOURCES[kind]
        if self._host.objects.types.for_group_kind(resource.group, resource.kind) is not None:
            return
        config = derive_built_in(resource.group_kind, is_cluster_wide=True)
        if config is not None:
            try:
                await self._host.client.create(FEDERATED_TYPE_CONFIGS, config)
            except AlreadyExists:
                return


def _selector_count(requests: Mapping[str, Sequence[DeviceRequest]]) -> int:
    each: Any = (part for found in requests.values() for request in found for part in request.alternatives)
    return sum(len(part.selectors) for part in each)
