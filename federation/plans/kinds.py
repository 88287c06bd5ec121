"""Resolve the names that users write for kinds (`apps/v1` and `Deployment`, or `deploy`) by API discovery."""

from typing import Any, Protocol

import orjson

from federation.api.resources import CORE_GROUP
from federation.apimachinery.errors import ConfigurationError, UnknownName, from_status
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.nearestname import did_you_mean
from federation.apimachinery.resources import Resource


def split_target(target: str, origin: str) -> tuple[str, str]:
    """Return the parts of KIND/NAME; ConfigurationError begins with `origin` when the target has another form."""
    kind, separator, name = target.partition("/")
    if not separator or not kind or not name or "/" in name:
        raise ConfigurationError(f"{origin}: write KIND/NAME, for example deployment/nginx")
    return kind, name


class Server(Protocol):
    """A server that can be asked for what it serves: a `Client`, or a member behind the host."""

    async def raw(self, method: str, path: str, /) -> tuple[int, bytes]:
        """Send a request and return status code and body."""
        ...


class ServedKinds:
    """The kinds that the server serves; each group version is fetched once."""

    def __init__(self, host: Server) -> None:
        self._host = host
        self._listed: dict[str, list[tuple[Resource, set[str]]]] = {}

    async def of(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of this API version and kind, None when it is not served."""
        for resource, _ in await self._served(api_version):
            if resource.kind == kind:
                return resource
        return None

    async def named(self, text: str) -> Resource:
        """Return the resource of a kind, plural, singular or short name, with or without group.

        UnknownName when the server does not serve it.
        """
        wanted, _, group_wanted = text.lower().partition(".")
        for api_version in await self._versions():
            group = api_version.rpartition("/")[0]
            if group_wanted and group != group_wanted:
                continue
            for resource, known in await self._served(api_version):
                if wanted in known:
                    return resource
        known = {name for served in self._listed.values() for _, names in served for name in names if name}
        hint = did_you_mean(wanted, known) or "; `kubectl api-resources` lists the kinds it has"
        raise UnknownName(f"the server has no kind {text!r}{hint}")

    async def _versions(self) -> list[str]:
        """Return the API versions, preferred ones first; a short name of a usual kind is found in the first few."""
        groups = (await self._get("/apis") or {}).get("groups") or ()
        preferred = [str(group["preferredVersion"]["groupVersion"]) for group in groups]
        ours = [version for version in preferred if version.startswith(f"{CORE_GROUP}/")]
        usual = [version for version in ("apps/v1", "batch/v1") if version in preferred]
        first = ["v1", *usual, *ours]
        every = [str(version["groupVersion"]) for group in groups for version in group["versions"]]
        # A kind can be absent from the preferred version of its group: CloneSet is.
        return list(dict.fromkeys((*first, *preferred, *every)))

    async def _served(self, api_version: str) -> list[tuple[Resource, set[str]]]:
        if api_version not in self._listed:
            group, _, version = api_version.rpartition("/")
            found = await self._get(f"/apis/{api_version}" if group else f"/api/{api_version}")
            self._listed[api_version] = [
                (
                    Resource(group, version, entry["kind"], entry["name"], entry["namespaced"]),
                    {entry["kind"].lower(), entry["name"], entry.get("singularName"), *entry.get("shortNames", ())},
                )
                for entry in (found or {}).get("resources") or ()
                if "/" not in entry["name"]
            ]
        return self._listed[api_version]

    async def _get(self, path: str) -> dict[str, Any] | None:
        code, body = await self._host.raw("GET", path)
        if code in (401, 403):
            raise from_status(parse_object(body) or {}, code)
        if code != 200:
            return None  # A version may be gone, or its aggregated server away.
        found: dict[str, Any] = orjson.loads(body)
        return found
