"""The addresses of the server behind a Service, and which of them may be contacted. Pure.

There is no cluster network here, so a cluster IP leads nowhere: requests go to the endpoints, as with kube-apiserver's
`--enable-aggregator-routing`, or to the external name.

Who may write Endpoints or an external name chooses where this server connects to. That is harmless while the server's
certificate is verified, because nothing is sent before. With `insecureSkipTLSVerify` addresses of this machine and of
its network segment are refused, since they include services that trust every client that can reach them.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from federation.apiserver.registry.apiservices import ServiceBackend

Fields = Mapping[str, Any]
_ROUTED: Final = ("ClusterIP", "NodePort", "LoadBalancer")
_ADDRESS_TYPES: Final = ("IPv4", "IPv6")


class Target(NamedTuple):
    """One address of a server: a host name or IP address, and a port."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Problem(NamedTuple):
    """The reason and message of a condition `Available` that is not true."""

    reason: str
    message: str


def find_targets(
    backend: ServiceBackend, service: Fields | None, slices: Sequence[Fields], endpoints: Fields | None
) -> list[Target] | Problem:
    """Return the ready addresses of a Service, never an empty list, or why there are none.

    `slices` are its EndpointSlices. Its Endpoints count when it has no slices.
    """
    where = f'service/{backend.name} in "{backend.namespace}"'
    if service is None:
        return Problem("ServiceNotFound", f"{where} is not present")
    spec = service.get("spec") or {}
    kind = spec.get("type") or "ClusterIP"
    if kind == "ExternalName":
        return [Target(spec.get("externalName") or "", backend.port)]
    if kind not in _ROUTED:
        return Problem("FailedDiscoveryCheck", f'unsupported service type "{kind}"')
    port = next((port for port in spec.get("ports") or () if port.get("port") == backend.port), None)
    if port is None:
        return Problem("ServicePortError", f"{where} is not listening on port {backend.port}")
    name = port.get("name") or ""
    if not slices and endpoints is None:
        return Problem("EndpointsNotFound", f"cannot find endpointslices for {where}")
    found = list(_from_slices(slices, name)) if slices else list(_from_endpoints(endpoints or {}, name))
    if not found:
        return Problem("MissingEndpoints", f'endpointslices for {where} have no addresses with port name "{name}"')
    return list(dict.fromkeys(found))


def _from_slices(slices: Sequence[Fields], port_name: str) -> Iterable[Target]:
    for found in slices:
        if found.get("addressType") not in _ADDRESS_TYPES:
            continue
        for port in found.get("ports") or ():
            if (port.get("name") or "") != port_name or not port.get("port"):
                continue
            for endpoint in found.get("endpoints") or ():
                is_ready = (endpoint.get("conditions") or {}).get("ready")
                if is_ready is not False and endpoint.get("addresses"):
                    yield Target(endpoint["addresses"][0], port["port"])


def _from_endpoints(endpoints: Fields, port_name: str) -> Iterable[Target]:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            if (port.get("name") or "") == port_name and port.get("port"):
                for address in subset.get("addresses") or ():
                    yield Target(address.get("ip") or "", port["port"])


def is_permitted(address: str, *, is_insecure: bool) -> bool:
    """Return whether an IP address may be contacted."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if parsed.is_multicast or parsed.is_unspecified:
        return False
    return not (is_insecure and (parsed.is_loopback or parsed.is_link_local))
