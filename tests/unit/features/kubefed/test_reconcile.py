"""A reconcile whose object was deleted while its key waited."""

import pytest
from tests.unit.controllers.hosting import a_host

from federation.api.kubefedkinds import FEDERATED_KINDS, REPLICA_PREFERENCES
from federation.api.resources import PROPAGATION_POLICIES
from federation.features.kubefed.reconcile import FederatedKey, Reconciler
from federation.runtime.controller import DONE


@pytest.mark.parametrize("kind", ["FederatedConfigMap", "FederatedNamespace"])
async def test_an_object_that_is_gone_writes_nothing(kind: str) -> None:
    async with a_host() as host:
        informers = host.informers
        reconciler = Reconciler(
            host.wired,
            {name: informers.for_resource(each.resource) for name, each in FEDERATED_KINDS.items()},
            informers.for_resource(REPLICA_PREFERENCES),
            informers.for_resource(PROPAGATION_POLICIES),
        )
        assert await reconciler.reconcile(FederatedKey(kind, "default", "gone")) is DONE
        assert not host.client.writes
