"""The kinds that an existing API server serves, as a table in memory.

Admission looks kinds up without waiting, as it does in the registry of the embedded API server. A kind that is missing
is looked for again on the host, because its definition may be new (`refresh_missing`).
"""

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Resource
from federation.client.client import Client
from federation.controllers.cluster.apidiscovery import discover

_REFRESH_S = 60.0
"""Interval of the discovery."""
_MISSING_S = 1.0
"""How old the table must be before it is read again for a kind that is missing from it."""


class HostKinds:
    """Lives as long as the control plane; empty before the first refresh."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._published: list[dict[str, str]] = []
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self._read_at_s = float("-inf")

    def find(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of an apiVersion and kind, None when it is not served."""
        return self._by_kind.get((api_version, kind))

    def of_kind(self, kind: str) -> list[Resource]:
        """Return the served resources of a kind in any group, one version of each."""
        found = {each.group_resource: each for each in self._by_kind.values() if each.kind == kind}
        return list(found.values())

    async def refresh(self) -> None:
        """Read all kinds from the host; ClusterError when it does not answer."""
        self._read_at_s = self._clock.monotonic()
        self._published = (await discover(self._client, self._published)).types
        resources = [
            Resource(each.get("group", ""), each["version"], each["kind"], each["pluralName"], _is_namespaced(each))
            for each in self._published
        ]
        self._by_kind = {(each.api_version, each.kind): each for each in resources}

    async def refresh_missing(self) -> bool:
        """Read the kinds again unless they were read a moment ago; return whether that was done."""
        if self._clock.monotonic() - self._read_at_s < _MISSING_S:
            return False
        await self.refresh()
        return True

    async def run(self) -> None:
        """Refresh until cancelled."""
        while True:
            await self._clock.sleep(_REFRESH_S)
            await self.refresh()


def _is_namespaced(type_: dict[str, str]) -> bool:
    return type_["scope"] == "Namespaced"
