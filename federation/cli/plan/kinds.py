"""Kinds by the names that users write, from the API server's discovery: `apps/v1` and `Deployment`, or `deploy`."""

from typing import Any

import orjson

from federation.api.resources import CORE_GROUP, Resource
from federation.base.errors import ConfigurationError
from federation.client.protocol import Client


class Kinds:
    """What the server serves; each group is asked for once."""

    def __init__(self, host: Client) -> None:
        self._host = host
        self._listed: dict[str, list[tuple[Resource, set[str]]]] = {}

    async def of(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of exactly this kind, None when it is not served."""
        for resource, _ in await self._served(api_version):
            if resource.kind == kind:
                return resource
        return None

    async def named(self, text: str) -> Resource:
        """Return the resource of a kind, plural, singular or short name, with or without group; ConfigurationError."""
        wanted, _, group_wanted = text.lower().partition(".")
        for api_version in await self._versions():
            group = api_version.rpartition("/")[0]
            if group_wanted and group != group_wanted:
                continue
            for resource, known in await self._served(api_version):
                if wanted in known:
                    return resource
        raise ConfigurationError(f"{text!r} is no kind that the server knows; `kubectl api-resources` lists them")

    async def _versions(self) -> list[str]:
        groups = (await self._get("/apis") or {}).get("groups") or ()
        preferred = [str(group["preferredVersion"]["groupVersion"]) for group in groups]
        ours = [version for version in preferred if version.startswith(f"{CORE_GROUP}/")]
        usual = [version for version in ("apps/v1", "batch/v1") if version in preferred]
        first = ["v1", *usual, *ours]
        return [*first, *(version for version in preferred if version not in first)]

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
        if code != 200:
            return None
        found: dict[str, Any] = orjson.loads(body)
        return found
