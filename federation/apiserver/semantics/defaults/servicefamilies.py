"""Address families of a Service, and the allocated fields that an update keeps or releases, as in kube-apiserver. Pure.

Both families are configured: members have the networks, so a Service of either family or of both is accepted.
`registry/serviceaddresses.py` allocates the addresses.
"""

from collections.abc import Mapping
from typing import Any, Final

Fields = dict[str, Any]

FAMILIES: Final = ("IPv4", "IPv6")
SINGLE_STACK: Final = "SingleStack"
DUAL_STACK: Final = ("PreferDualStack", "RequireDualStack")
HEADLESS: Final = "None"
_BALANCER: Final = "LoadBalancer"


def family_of(address: str) -> str:
    """Return the family of an address."""
    return "IPv6" if ":" in address else "IPv4"


def addresses_of(spec: Mapping[str, Any]) -> list[str]:
    """Return the cluster IPs of a Service in order; none for a headless one."""
    first = spec.get("clusterIP")
    found = spec.get("clusterIPs") or ([first] if first else [])
    return [address for address in found if address and address != HEADLESS]


def has_health_check(spec: Mapping[str, Any]) -> bool:
    """Return whether nodes answer health checks of the Service at a port of its own."""
    return spec.get("type") == _BALANCER and spec.get("externalTrafficPolicy") == "Local"


def complete_families(spec: Fields) -> None:
    """Fill the policy and the families that the addresses and the policy of a Service ask for."""
    if spec.get("type") == "ExternalName":
        return
    if not spec.get("ipFamilyPolicy"):
        is_open = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
        spec["ipFamilyPolicy"] = "RequireDualStack" if is_open else SINGLE_STACK
    count = 2 if spec["ipFamilyPolicy"] in DUAL_STACK else 1
    families = list(spec.get("ipFamilies") or ())
    families += [family_of(address) for address in addresses_of(spec)[len(families) : count]]
    families = families or [FAMILIES[0]]
    if len(families) < count and families[0] in FAMILIES:
        families += [family for family in FAMILIES if family != families[0]]
    spec["ipFamilies"] = families


def keep_allocated(spec: Fields, live: Mapping[str, Any]) -> None:
    """Keep the addresses, families and health check port of the live Service that a new manifest does not contain."""
    if not spec.get("clusterIP") and live.get("clusterIP"):
        spec["clusterIP"] = live["clusterIP"]
        spec["clusterIPs"] = live.get("clusterIPs", [live["clusterIP"]])
    elif spec.get("clusterIP") == live.get("clusterIP") and not spec.get("clusterIPs") and live.get("clusterIPs"):
        spec["clusterIPs"] = live["clusterIPs"]
    for field in ("ipFamilyPolicy", "ipFamilies"):
        if not spec.get(field) and live.get(field):
            spec[field] = live[field]
    if spec.get("ipFamilyPolicy") == SINGLE_STACK and live.get("ipFamilyPolicy") in DUAL_STACK:
        for field in ("ipFamilies", "clusterIPs"):
            if spec.get(field) and spec[field] == live.get(field):
                spec[field] = spec[field][:1]
    if has_health_check(spec) and has_health_check(live):
        if not spec.get("healthCheckNodePort") and live.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = live["healthCheckNodePort"]
    elif not has_health_check(spec) and spec.get("healthCheckNodePort") == live.get("healthCheckNodePort"):
        spec.pop("healthCheckNodePort", None)
    if live.get("type") == _BALANCER and spec.get("type") != _BALANCER:
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(field) == live.get(field):
                spec.pop(field, None)
