"""The steps that propagate one namespace to every joined cluster; `namespaces.py` plans the patch."""

import re
from collections.abc import Callable, Sequence

from federation.api import names
from federation.apimachinery.resources import Object
from federation.planning.federatedobject import namespaces, pendingcontrollers
from federation.planning.projects.projectindex import ProjectIndex
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.federatedobjects import FederatedObjects

WRITER = "nsautoprop"


class Reconciler:
    """Updates the placement of one namespace per call."""

    def __init__(
        self,
        objects: FederatedObjects,
        *,
        clusters: Callable[[], Sequence[Object]],
        exclude: re.Pattern[str] | None = None,
        projects: ProjectIndex,
    ) -> None:
        self._objects = objects
        self._clusters = clusters
        self._exclude = exclude
        self._projects = projects

    async def reconcile(self, key: Key) -> Result:
        """Place the namespace when the controller may act, and leave `pending-controllers`."""
        federated = self._objects.get(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            return DONE
        type_ = self._objects.type_of(federated)
        if type_ is None or not pendingcontrollers.dependencies_fulfilled(
            federated, names.NSAUTOPROP_CONTROLLER, type_.controllers
        ):
            self._objects.defer(key, writer=WRITER)
            return DONE
        patch = namespaces.plan_namespace(federated, self._clusters(), type_.controllers, self._exclude, self._projects)
        if patch is not None:
            await self._objects.patch(key, federated, patch, writer=WRITER)
        return DONE
