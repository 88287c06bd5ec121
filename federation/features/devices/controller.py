"""Triggers: an object whose pods claim devices, and the claims that it names."""

from collections.abc import Iterator

from federation.apimachinery.resources import Object
from federation.features.devices.reconcile import Reconciler
from federation.planning.clusters.deviceclaims import CLAIMS, DEVICE_GROUP, KINDS
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.scheduling.podrequest import claims_named

_BY_CLAIM = "device claims"
_WORKERS = 2
_KINDS = {kind: ref for ref, kind in KINDS.items()}


class DeviceClaimController:
    """Records what the claims of objects ask for. `run` works until cancelled."""

    def __init__(self, host: Host) -> None:
        self._objects = host.objects
        self._objects.add_index(_BY_CLAIM, self._claims_named)
        self.controller: Controller[Key] = Controller(
            "deviceclaims", Reconciler(host).reconcile, workers=_WORKERS, clock=host.clock
        )

    async def run(self) -> None:
        """Subscribe once all objects are known, and start the workers."""
        await self._objects.wait_synced()
        self._objects.subscribe(self._on_federated, None, is_late=True)
        await self.controller.run()

    def _claims_named(self, federated: Object) -> Iterator[str]:
        type_ = self._objects.type_of(federated)
        if type_ is not None:
            yield from claims_named(federated["spec"]["template"], type_)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        template = federated["spec"]["template"]
        kind = _KINDS.get(str(template.get("kind")))
        if kind is not None and str(template.get("apiVersion")).startswith(f"{DEVICE_GROUP}/"):
            if old is None or new is None or old["spec"]["template"] != new["spec"]["template"]:
                ref = f"{kind}/{(template.get('metadata') or {}).get('name')}"
                for key in self._objects.keys_by_index(_BY_CLAIM, ref, federated["metadata"].get("namespace", "")):
                    self.controller.enqueue(key)
        elif new is not None and (CLAIMS.of(new) is not None or any(self._claims_named(new))):
            self.controller.enqueue(key_of(new))
