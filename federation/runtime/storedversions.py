"""The version that the host stores of each kind with a definition, for patches of its objects.

It follows the CustomResourceDefinitions of the host; `version_of` returns the version for patches of a kind, "" to
leave them as they are. It lives as long as the control plane. Read next: `client/storedversion.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from federation.apimachinery.resources import CRDS, Object, Resource
from federation.runtime.informers import Informers
from federation.runtime.transforms import slim_definition


class StoredVersions:
    """The stored versions by group and plural."""

    def __init__(self, informers: Informers, version_of: Callable[[Mapping[str, Any]], str]) -> None:
        self._version_of = version_of
        self._versions: dict[tuple[str, str], str] = {}
        self._definitions = informers.for_resource(CRDS, transform=slim_definition)
        self._definitions.add_handler(self._on_definition)

    async def stored_in(self, resource: Resource) -> Resource:
        """Return the resource in the version that is stored, once all definitions are known."""
        if "." not in resource.group:
            return resource  # a definition's group is a domain
        if not self._definitions.has_synced:
            await self._definitions.wait_synced()
        version = self._versions.get((resource.group, resource.plural))
        return resource if version is None else resource._replace(version=version)

    def _on_definition(self, old: Object | None, new: Object | None) -> None:
        spec = (new if new is not None else old or {})["spec"]
        key = str(spec.get("group")), str((spec.get("names") or {}).get("plural"))
        if new is not None and (version := self._version_of(new)):
            self._versions[key] = version
        else:
            self._versions.pop(key, None)
