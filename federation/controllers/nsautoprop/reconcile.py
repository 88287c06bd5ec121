"""The steps that send a namespace to every joined cluster: decide in `planning/namespaces.py`, write one patch."""

import re
from collections.abc import Callable, Sequence

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, Object
from federation.base.errors import NotFound
from federation.client.protocol import Client, PatchType
from federation.planning import namespaces, pipeline
from federation.runtime.controller import DONE, Key, Result


class Reconciler:
    """Brings the placement of one namespace up to date per call."""

    def __init__(
        self,
        client: Client,
        *,
        federated: Callable[[Key], Object | None],
        type_of: Callable[[Object], FederatedType | None],
        clusters: Callable[[], Sequence[Object]],
        exclude: re.Pattern[str] | None = None,
    ) -> None:
        self._client = client
        self._federated = federated
        self._type_of = type_of
        self._clusters = clusters
        self._exclude = exclude

    async def reconcile(self, key: Key) -> Result:
        """Place the namespace when it is our turn, and end the turn."""
        federated = self._federated(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            return DONE
        type_ = self._type_of(federated)
        if type_ is None or not pipeline.is_turn_of(federated, names.NSAUTOPROP_CONTROLLER, type_.controllers):
            return DONE
        patch = namespaces.plan_namespace(federated, self._clusters(), type_.controllers, self._exclude)
        if patch is None:
            return DONE
        try:
            await self._client.patch(
                CLUSTER_FEDERATED_OBJECTS,
                key.name,
                patch,
                patch_type=PatchType.MERGE,
                field_manager=names.FIELD_MANAGER,
            )
        except NotFound:
            return DONE
        return DONE
