"""The federation that a command works on: a client for one context of a kubeconfig.

All command lines import this module, and only some need a client, so the client is imported when one is made.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import orjson

from federation.api import names
from federation.api.resources import CORE_GROUP
from federation.apimachinery.errors import (
    ApiError,
    ConfigurationError,
    Forbidden,
    NotFound,
    Unauthorized,
    from_status,
    is_kind_missing,
)
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import CONFIGMAPS, NAMESPACES

if TYPE_CHECKING:
    from federation.apimachinery.connection import Connection
    from federation.client.http import HTTPClient


@dataclass(frozen=True, slots=True)
class KubeconfigContext:
    """A context in a kubeconfig: the given file, else $KUBECONFIG, else ~/.kube/config; "" is its current context."""

    kubeconfig: Path | None
    context: str

    @property
    def path(self) -> Path:
        """The kubeconfig to read; ConfigurationError when none is given and the default does not exist."""
        if self.kubeconfig is not None:
            return self.kubeconfig
        listed = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
        path = Path(listed) if listed else Path.home() / ".kube" / "config"
        if not path.exists():
            raise ConfigurationError(
                f"no federation kubeconfig at {path}; give --kubeconfig FILE or run: export KUBECONFIG=DIR/kubeconfig"
            )
        return path

    @property
    def namespace(self) -> str:
        """The namespace of the context; `default` if it has none or the kubeconfig cannot be read."""
        from federation.client.kubeconfig import load_kubeconfig  # noqa: PLC0415  # see the module's docstring

        try:
            return load_kubeconfig(self.path, self.context).namespace or "default"
        except ConfigurationError:
            return "default"

    @asynccontextmanager
    async def client(self) -> AsyncIterator["HTTPClient"]:
        """Yield a client for the context and close it afterwards.

        ConfigurationError instead of NotFound if the server is not the host of a federation, and of Unauthorized;
        UnknownName instead of NotFound for an object, with the nearest name that exists.
        """
        from federation.client.kubeconfig import load_kubeconfig  # noqa: PLC0415  # see the module's docstring

        async with client_for(load_kubeconfig(self.path, self.context)) as client:
            try:
                yield client
            except (NotFound, Forbidden) as error:
                if (problem := await find_host_problem(client)) is not None:
                    raise problem from error
                if isinstance(error, NotFound) and not is_kind_missing(error):
                    from federation.plans.unknownnames import unknown_answer  # noqa: PLC0415  # see the module's docstring

                    raise await unknown_answer(client, error) from error
                raise
            except Unauthorized as error:
                where = f"{self.path}{f', context {self.context}' if self.context else ''}"
                raise ConfigurationError(
                    f"{client.connection.server} refuses the credentials in {where}: they are wrong, expired or"
                    " revoked; ask an administrator of the federation for new ones"
                ) from error


@asynccontextmanager
async def client_for(connection: "Connection") -> AsyncIterator["HTTPClient"]:
    """Yield a client for a connection, which removes no field of what it patches, and close it afterwards."""
    from federation.client.http import HTTPClient  # noqa: PLC0415  # see the module's docstring
    from federation.client.storedkinds import StoredKinds  # noqa: PLC0415  # as above
    from federation.client.storedversion import StoredVersionTransport  # noqa: PLC0415  # as above

    client = HTTPClient(connection)
    client.transport = StoredVersionTransport(client.transport, StoredKinds(client.transport).stored_in)
    try:
        yield client
    finally:
        await client.close()


async def get_json(client: "HTTPClient", path: str, query: dict[str, str]) -> object:
    """Return the parsed response to a GET outside the Kubernetes API; ApiError when the code is not 200.

    A host that is no federation itself says in a ConfigMap where the federation serves it.
    """
    target = f"{path}?{urlencode(query)}"
    code, body = await client.raw("GET", target)
    if code in (403, 404) and (endpoint := await _find_endpoint(client)) is not None:
        try:
            code, body = await endpoint.raw("GET", target)
        finally:
            await endpoint.close()
    if code == 404:
        missing = from_status(parse_object(body) or {}, code)
        if missing.details:  # the path is served, and what it was asked for does not exist
            raise missing
        raise await find_host_problem(client) or ConfigurationError(f"this federation is too old to answer {path}")
    try:
        answer: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ApiError(f"the server answered {code} without JSON", code=code) from None
    if code != 200:
        raise from_status(answer if isinstance(answer, dict) else {}, code)
    return answer


async def find_host_problem(client: "HTTPClient") -> ConfigurationError | None:
    """Return what is wrong with the server as the host of a federation, None if it is one or does not answer.

    A member has the claim of a federation on its system namespace (`client/identity.py`) and does not serve our kinds.
    """
    code, body = await client.raw("GET", "/apis")
    groups = (orjson.loads(body).get("groups") or ()) if code == 200 else ()
    if code != 200 or any(group.get("name") == CORE_GROUP for group in groups):
        return None
    server = client.connection.server
    try:
        namespace = await client.get(NAMESPACES, names.SYSTEM_NAMESPACE)
    except (NotFound, Forbidden):
        namespace = {"metadata": {}}
    what = "is not the host of a federation"
    if (namespace["metadata"].get("annotations") or {}).get(names.FEDERATED_CLUSTER_UID):
        what = "is a member of a federation, not its host"
    return ConfigurationError(
        f"{server} {what}; give the federation's own kubeconfig, DIR/kubeconfig, or its --context"
    )


async def _find_endpoint(host: "HTTPClient") -> "HTTPClient | None":
    """Return a client of the federation that runs on this host, with the credentials of the user; None without one."""
    from federation.client.http import HTTPClient  # noqa: PLC0415  # see the module's docstring

    try:
        found = (await host.get(CONFIGMAPS, names.HOST_ENDPOINT, names.SYSTEM_NAMESPACE)).get("data") or {}
    except (NotFound, Forbidden):
        return None
    if not found.get("url"):
        return None
    own = {"server": found["url"], "ca_data": str(found.get("ca.crt") or "").encode(), "tls_server_name": ""}
    return HTTPClient(replace(host.connection, insecure=False, proxy_url="", **own))
