"""The access modes of the PersistentVolumeClaims of one namespace, as their federated objects have them."""

from collections.abc import Sequence

from federation.runtime.federatedobjects import FederatedObjects


class ClaimModes:
    """Returns the access modes of a claim by its name, None when the host has no such claim."""

    def __init__(self, objects: FederatedObjects, namespace: str) -> None:
        self._objects = objects
        self._namespace = namespace

    def __call__(self, name: str) -> Sequence[str] | None:
        """Return the modes of one claim."""
        type_ = self._objects.types.for_group_kind("", "PersistentVolumeClaim")
        claim = None
        if type_ is not None:
            claim = self._objects.get(self._objects.key_for(type_, self._namespace, name))
        return None if claim is None else (claim["spec"]["template"].get("spec") or {}).get("accessModes") or ()
