"""The steps for one FederatedTypeConfig: hold it by finalizer while objects are federated by it, in the right version.

When it is deleted, its objects stay in the members until an annotation says what happens to them: `orphan: all` leaves
the member objects without our label, `cascading-delete` removes them. Then the federated objects are deleted, which
sync carries out, our finalizer leaves the sources, and the configuration goes. Every step may be repeated.

While it lives, it names the version of its kind that the host stores (`versions.py`). The templates of federated
objects follow: federate builds them from the sources, and those without a source, which an administrator wrote, get the
new version here unless a webhook converts what it says.
"""

import contextlib
from collections.abc import Callable
from functools import partial

from federation.api import names
from federation.api.federatedtype import Ending, FederatedType, from_config
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery import conditions
from federation.apimachinery.definitions import keeps_content
from federation.apimachinery.errors import Conflict, Invalid, NotFound
from federation.apimachinery.finalizers import has_finalizer, with_finalizers, without_finalizers
from federation.apimachinery.resources import GroupKind, Object, Resource
from federation.client.client import ObjectList
from federation.client.servedversion import in_served_version
from federation.features.types.names import (
    EVENT_TYPE_CONFIG_IN_USE,
    EVENT_TYPE_CONFIG_MOVED,
    EVENT_VERSION_NOT_CURRENT,
)
from federation.features.types.versions import Standing, plan_version, version_standing
from federation.planning.federatedobject.provenance import is_hand_written
from federation.runtime.controller import DONE, Result, key_of
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host

_RECHECK_S = 1.0
_PAGE_SIZE = 500
_ORPHANED = {names.INTERNAL_ORPHAN: "all"}


class Reconciler:
    """Reconciles one FederatedTypeConfig per call. `config` returns it by name, `definition` that of its kind."""

    def __init__(
        self,
        host: Host,
        *,
        config: Callable[[str], Object | None],
        definition: Callable[[GroupKind], Object | None],
    ) -> None:
        self._client = host.client
        self._objects = host.objects
        self._recorder = host.recorder
        self._config = config
        self._definition = definition
        self._clock = host.clock

    async def reconcile(self, name: str) -> Result:
        """Add our finalizer and follow the definition, or remove it once nothing is federated by the configuration."""
        config = self._config(name)
        if config is None:
            return DONE
        if not config["metadata"].get("deletionTimestamp"):
            if not has_finalizer(config, names.TYPE_CONFIG_FINALIZER):
                await self._set_finalizers(config, with_finalizers(config, names.TYPE_CONFIG_FINALIZER))
                return DONE  # the event of this write brings the configuration back
            await self._follow_definition(config)
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

    async def _follow_definition(self, config: Object) -> None:
        """Let the configuration name the version that the host stores, or report that it does not."""
        type_ = self._objects.types.by_name(config["metadata"]["name"])
        definition = None if type_ is None else self._definition(type_.resource.group_kind)
        if type_ is not None and definition is not None:
            if patch := plan_version(config, definition):
                await self._patch(config, patch)
                version = patch["spec"]["sourceType"]["version"]
                text = f"its version is {version} now, which the host stores; it was {type_.resource.version}"
                self._recorder.event(config, NORMAL, EVENT_TYPE_CONFIG_MOVED, text)
                return
            await self._convert_templates(type_, definition)
        await self._report(config, version_standing(config, definition))

    async def _convert_templates(self, type_: FederatedType, definition: Object) -> None:
        """Write the version of the type into templates without a source, which nothing else brings up to date."""
        if not keeps_content(definition):
            return
        for federated in self._objects.of_type(type_):
            template, metadata = federated["spec"]["template"], federated["metadata"]
            if is_hand_written(federated) and template["apiVersion"] != type_.resource.api_version:
                version = {"spec": {"template": {"apiVersion": type_.resource.api_version}}}
                patch = {**version, "metadata": {"resourceVersion": metadata["resourceVersion"]}}
                with contextlib.suppress(NotFound, Invalid):
                    await self._client.patch(
                        type_.federated_resource,
                        metadata["name"],
                        patch,
                        namespace=metadata.get("namespace", ""),
                        field_manager=names.FIELD_MANAGER,
                    )

    async def _report(self, config: Object, standing: Standing | None) -> None:
        present = (config.get("status") or {}).get("conditions") or []
        if standing is None:
            wanted = conditions.remove(present, names.VERSION_CURRENT)
        else:
            status, reason, message = standing
            wanted = conditions.set_condition(
                present,
                type_=names.VERSION_CURRENT,
                status=status,
                reason=reason,
                message=message,
                now=self._clock.now(),
            )
        if wanted is present:
            return
        # The definition requires a message.
        filled = [{"message": "", **each} for each in wanted]
        await self._client.patch_status(
            FEDERATED_TYPE_CONFIGS, config, {"conditions": filled}, field_manager=names.FIELD_MANAGER
        )
        if standing is not None and standing.message:
            self._recorder.event(config, WARNING, EVENT_VERSION_NOT_CURRENT, standing.message)

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
                resource, page = await in_served_version(self._client, type_.resource, partial(self._page, token))
            except NotFound:
                return True  # the host does not serve the kind in any version
            for source in page.items:
                if has_finalizer(source, names.FEDERATE_FINALIZER):
                    is_done = False
                    await self._release(resource, source)
            token = page.continue_token
            if not token:
                return is_done

    async def _page(self, token: str, resource: Resource) -> tuple[Resource, ObjectList]:
        return resource, await self._client.list(resource, limit=_PAGE_SIZE, continue_token=token)

    async def _release(self, resource: Resource, source: Object) -> None:
        metadata = source["metadata"]
        kept = without_finalizers(source, names.FEDERATE_FINALIZER)
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": kept or None}}
        namespace = metadata.get("namespace", "")
        try:
            await self._client.patch(
                resource, metadata["name"], patch, namespace=namespace, field_manager=names.FIELD_MANAGER
            )
        except (NotFound, Conflict):
            return

    async def _set_finalizers(self, config: Object, finalizers: list[str]) -> None:
        version = config["metadata"]["resourceVersion"]
        await self._patch(config, {"metadata": {"resourceVersion": version, "finalizers": finalizers}})

    async def _patch(self, config: Object, patch: Object) -> None:
        name = config["metadata"]["name"]
        with contextlib.suppress(NotFound):
            await self._client.patch(FEDERATED_TYPE_CONFIGS, name, patch, field_manager=names.FIELD_MANAGER)
