"""Finds and probes the servers of APIServices, and reads what they serve.

A `Backend` is what `proxy.py` needs of one server; `aggregator.py` decides when it is refreshed. Names are resolved
here and connections go to the resolved addresses, so that an address which was permitted is the one that is contacted.
"""

import asyncio
import base64
import binascii
import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.apimachinery.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES, Object, Resource
from federation.apimachinery.webhookclient import WebhookClient, WebhookResponse
from federation.apiserver.aggregation.remotediscovery import read_aggregated, read_classic, read_openapi_hash
from federation.apiserver.aggregation.targets import Problem, Target, find_targets, is_permitted
from federation.apiserver.auth.identity import MASTERS, User
from federation.apiserver.http.forwardedheaders import user_headers
from federation.apiserver.registry.apiservices import APIEntry, RemoteDocuments, ServiceBackend
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import ListOptions

AGGREGATOR: Final = User("system:kube-aggregator", (MASTERS,))
"""The user of the requests that this server sends itself."""
PROBE_S_MAX: Final = 5.0
_TARGETS_MAX: Final = 5
"""Addresses that one probe contacts."""
_ADDRESSES_MAX: Final = 16
"""Addresses of one server that requests are spread over."""
_SLICES_MAX: Final = 100
_JSON: Final = {"Accept": "application/json"}
_AGGREGATED: Final = {
    "Accept": ",".join(
        f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
    )
}

ClientIdentity = tuple[bytes, bytes]
"""PEM of this server's client certificate and of its key."""


@dataclass(frozen=True, slots=True)
class Address:
    """A resolved address of a server."""

    target: Target
    """The server that the Service names."""
    connection: Connection
    """Where and how to connect; `server` is the start of all URLs."""


@dataclass(slots=True)
class Backend:
    """One APIService's server, as last seen."""

    addresses: tuple[Address, ...] = ()
    in_flight: int = 0
    """Forwarded requests that are not watches."""
    _turn: int = field(default=0, repr=False)

    def next_address(self) -> Address | None:
        """Return the addresses in turn, None when there are none."""
        self._turn += 1
        return self.addresses[self._turn % len(self.addresses)] if self.addresses else None


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of a probe: the usable addresses, those that answered first, or the problem."""

    addresses: tuple[Address, ...] = ()
    problem: Problem | None = None
    resources: bytes = b""
    """The body of the answer: the resources of the group version."""


class Prober:
    """Probes servers. `identity` reads the client certificate and may block."""

    def __init__(self, registry: Registry, client: WebhookClient, identity: Callable[[], ClientIdentity]) -> None:
        self._registry = registry
        self._client = client
        self._identity = identity

    async def probe(self, entry: APIEntry, service: ServiceBackend) -> Probe:
        """Find the addresses of an APIService's server and request its group version from some of them."""
        targets = await self._targets(service)
        if isinstance(targets, Problem):
            return Probe(problem=targets)
        addresses = await self._resolve(service, targets)
        if isinstance(addresses, Problem):
            return Probe(problem=addresses)
        answers = await asyncio.gather(
            *(self._get(address, _path(entry), _JSON) for address in addresses[:_TARGETS_MAX])
        )
        working: list[Address] = []
        problem, resources = "", b""
        for address, answer in zip(addresses, answers, strict=False):
            if 200 <= answer.status < 300:
                working.append(address)
                resources = resources or answer.body
            else:
                url = f"https://{address.target.authority}{_path(entry)}"
                reason = answer.error or f"bad status from {url}: {answer.status}"
                problem = f"failing or missing response from {url}: {reason}"
        if not working:
            return Probe(problem=Problem("FailedDiscoveryCheck", problem))
        return Probe((*working, *addresses[_TARGETS_MAX:]), None, resources)

    async def documents(self, entry: APIEntry, probe: Probe, known: RemoteDocuments) -> RemoteDocuments:
        """Return what the server of a successful probe serves; what was known, as stale, when it does not tell."""
        address = probe.addresses[0]
        aggregated, openapi = await asyncio.gather(
            self._get(address, "/apis", _AGGREGATED), self._get(address, "/openapi/v3", _JSON)
        )
        found = read_aggregated(aggregated.body, *entry.group_version) if aggregated.status == 200 else None
        if found is None and aggregated.status != 503:
            found = read_classic(probe.resources, *entry.group_version)
        if found is None:
            return replace(known, is_fresh=False)
        digest = read_openapi_hash(openapi.body, *entry.group_version) if openapi.status == 200 else ""
        return RemoteDocuments(found, is_fresh=True, openapi_hash=digest)

    async def _targets(self, service: ServiceBackend) -> list[Target] | Problem:
        found, endpoints = await asyncio.gather(
            self._read(SERVICES, service.namespace, service.name),
            self._read(ENDPOINTS, service.namespace, service.name),
        )
        info = self._registry.kinds.lookup(ENDPOINT_SLICES.group, ENDPOINT_SLICES.version, ENDPOINT_SLICES.plural)
        selector = f"kubernetes.io/service-name={service.name}"
        options = ListOptions(label_selector=selector, limit=_SLICES_MAX)
        page = await self._registry.list(info, service.namespace, options)
        return find_targets(service, found, [orjson.loads(item) for item in page.items], endpoints)

    async def _read(self, resource: Resource, namespace: str, name: str) -> Object | None:
        info = self._registry.kinds.lookup(resource.group, resource.version, resource.plural)
        try:
            found: Object = orjson.loads(await self._registry.get(info, namespace, name))
        except NotFound:
            return None
        return found

    async def _resolve(self, service: ServiceBackend, targets: Sequence[Target]) -> list[Address] | Problem:
        certificate, key = await asyncio.to_thread(self._identity)
        try:
            bundle = base64.b64decode(service.ca_bundle, validate=True)
            connection = Connection(
                "https://",
                ca_data=bundle,
                client_cert_data=certificate,
                client_key_data=key,
                insecure=service.is_insecure,
                tls_server_name=f"{service.name}.{service.namespace}.svc",
            )
            connection.to_tls()  # a broken bundle fails here, with the name of the field
        except (binascii.Error, ConfigurationError) as error:
            return Problem("FailedDiscoveryCheck", f"spec.caBundle holds no certificates: {error}")
        addresses: list[Address] = []
        problem = ""
        for target in targets[:_ADDRESSES_MAX]:
            try:
                resolved = await _look_up(target)
            except OSError as error:
                problem = f"cannot resolve {target.host}: {error.strerror or error}"
                continue
            for ip in resolved:
                if is_permitted(ip, is_insecure=service.is_insecure):
                    at = Target(ip, target.port)
                    addresses.append(Address(target, replace(connection, server=f"https://{at.authority}")))
                else:
                    problem = (
                        f"the address {ip} of service/{service.name} is not contacted without verifying the server:"
                        " give spec.caBundle instead of spec.insecureSkipTLSVerify"
                        if service.is_insecure
                        else f"the address {ip} of service/{service.name} is not the address of a host"
                    )
        if not addresses:
            return Problem("FailedDiscoveryCheck", problem)
        return addresses[:_ADDRESSES_MAX]

    async def _get(self, address: Address, path: str, accept: dict[str, str]) -> WebhookResponse:
        connection = replace(address.connection, server=address.connection.server + path)
        headers = {"Host": address.target.authority, **accept, **dict(user_headers(AGGREGATOR))}
        return await self._client.get(connection, headers, timeout_s=PROBE_S_MAX)


async def _look_up(target: Target) -> list[str]:
    """Return the IP addresses of a target; OSError when its name cannot be resolved in time."""
    try:
        return [str(ipaddress.ip_address(target.host))]
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PROBE_S_MAX):
        found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _path(entry: APIEntry) -> str:
    return f"/apis/{entry.group}/{entry.version}" if entry.group else f"/api/{entry.version}"
