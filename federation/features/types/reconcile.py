"""The steps for one FederatedTypeConfig: hold it by finalizer while objects are federated by it.

When it is deleted, its objects stay in the members until an annotation says what happens to them: `orphan: all` leaves
the member objects without our label, `cascading-delete` removes them. Then the federated objects are deleted, which
sync carries out, our finalizer leaves the sources, and the configuration goes. Every step may be repeated.
"""

from collections.abc import Callable

from federation.api import names
from federation.api.federatedtype import Ending, FederatedType, from_config
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.errors import Conflict, NotFound
from federation.apimachinery.finalizers import has_finalizer, with_finalizers, without_finalizers
from federation.apimachinery.resources import Object
from federation.features.types.names import EVENT_TYPE_CONFIG_IN_USE
from federation.runtime.controller import DONE, Result, key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host

_RECHECK_S = 1.0
_PAGE_SIZE = 500
_ORPHANED = {names.INTERNAL_ORPHAN: "all"}


class Reconciler:
    """Reconciles one FederatedTypeConfig per call. `config` returns it by name."""

    def __init__(self, host: Host, *, config: Callable[[str], Object | None]) -> None:
        self._client = host.client
        self._objects = host.objects
        self._recorder = host.recorder
        self._config = config

    async def reconcile(self, name: str) -> Result:
        """Add our finalizer, or remove it once nothing is federated by the configuration."""
        config = self._config(name)
        if config is None:
            return DONE
        if not config["metadata"].get("deletionTimestamp"):
            if not has_finalizer(config, names.TYPE_CONFIG_FINALIZER):
                await self._set_finalizers(config, with_finalizers(config, names.TYPE_CONFIG_FINALIZER))
            return DONE
        if not has_finalizer(config, names.TYPE_CONFIG_FINALIZER):
            return DONE
        try:
            type_ = from_config(config)
        except (ValueError, KeyError, TypeError):
            type_ = None  # nothing can be federated by it
        if type_ is not None and self._objects.types.by_name(name) is not None:
            result = await self._end(config, type_)
            if result is not None:
                return result
        await self._set_finalizers(config, without_finalizers(config, names.TYPE_CONFIG_FINALIZER))
        return DONE

    def report_removed(self, config: Object) -> None:
        """Say what a configuration leaves behind whose finalizer somebody removed."""
        try:
            count = len(self._objects.of_type(from_config(config)))
        except (ValueError, KeyError, TypeError):
            return
        if count:
            text = (
                f"it was removed while objects are federated by it: {count}; their copies stay, and their deletion"
                " waits until the configuration is created again"
            )
            self._recorder.event(config, WARNING, EVENT_TYPE_CONFIG_IN_USE, text)

    async def _end(self, config: Object, type_: FederatedType) -> Result | None:
        """End the federation of the type's objects as asked; None when none is left."""
        federated = self._objects.of_type(type_)
        if federated and type_.ending is Ending.WAITS:
            annotate = f"kubectl annotate ftc {config['metadata']['name']}"
            text = (
                f"objects that are federated by it: {len(federated)}; to leave them in the members: {annotate}"
                f" {names.ORPHAN}=all; to remove them from the members: {annotate} {names.CASCADING_DELETE}=true"
            )
            self._recorder.event(config, WARNING, EVENT_TYPE_CONFIG_IN_USE, text)
            return Result(requeue_after_s=_RECHECK_S * 30)
        for obj in federated:
            await self._delete(type_, obj)
        if federated:
            return Result(requeue_after_s=_RECHECK_S)
        return None if await self._release_sources(type_) else Result(requeue_after_s=_RECHECK_S)

    async def _delete(self, type_: FederatedType, federated: Object) -> None:
        metadata = federated["metadata"]
        if metadata.get("deletionTimestamp"):
            return
        if type_.ending is Ending.ORPHAN and (metadata.get("annotations") or {}).get(names.INTERNAL_ORPHAN) != "all":
            await self._objects.patch(key_of(federated), federated, {"metadata": {"annotations": _ORPHANED}})
        try:
            await self._client.delete(
                type_.federated_resource, metadata["name"], metadata.get("namespace", ""), uid=metadata.get("uid", "")
            )
        except (NotFound, Conflict):
            return

    async def _release_sources(self, type_: FederatedType) -> bool:
        """Remove our finalizer from all sources; return whether none had it, as the server says."""
        is_done, token = True, ""
        while True:
            try:
                page = await self._client.list(type_.resource, limit=_PAGE_SIZE, continue_token=token)
            except NotFound:
                return True  # the host does not serve the kind any more
            for source in page.items:
                if has_finalizer(source, names.FEDERATE_FINALIZER):
                    is_done = False
                    await self._release(type_, source)
            token = page.continue_token
            if not token:
                return is_done

    async def _release(self, type_: FederatedType, source: Object) -> None:
        metadata = source["metadata"]
        kept = without_finalizers(source, names.FEDERATE_FINALIZER)
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": kept or None}}
        namespace = metadata.get("namespace", "")
        try:
            await self._client.patch(
                type_.resource, metadata["name"], patch, namespace=namespace, field_manager=names.FIELD_MANAGER
            )
        except (NotFound, Conflict):
            return

    async def _set_finalizers(self, config: Object, finalizers: list[str]) -> None:
        metadata = config["metadata"]
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": finalizers}}
        try:
            await self._client.patch(FEDERATED_TYPE_CONFIGS, metadata["name"], patch, field_manager=names.FIELD_MANAGER)
        except NotFound:
            return
