"""Strategies of ServiceCIDRs and IPAddresses.

They are stored and validated as in Kubernetes. Services get their addresses from the server's own allocator
(`registry/serviceaddresses.py`), which does not read them.
"""

from typing import ClassVar

from federation.apimachinery import nameformats
from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.fielderrors import Causes, immutable, invalid, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.strategies.base import USER_METADATA, StatusFields, Strategy
from federation.apiserver.semantics.validation.addressvalidation import cidr_family, cidr_problems, ip_problems

_CIDRS = "spec.cidrs"
_IMMUTABLE = "field is immutable"
_ONE_PER_FAMILY = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


class ServiceCIDRStrategy(Strategy):
    """networking.k8s.io/v1 ServiceCIDR: one CIDR, or one of each family."""

    names_again = False
    status_always: ClassVar[StatusFields] = {}
    status_resets = USER_METADATA

    def validate(self, obj: Object) -> Causes:
        return _validate_cidrs(value_at(obj, _CIDRS) or [])

    def validate_update(self, new: Object, old: Object) -> Causes:
        before, after = value_at(old, _CIDRS) or [], value_at(new, _CIDRS) or []
        is_extension = (len(before), len(after)) == (1, 2)
        if len(before) != len(after) and not is_extension:
            return [invalid(_CIDRS, after, _IMMUTABLE)]
        changed = [index for index, cidr in enumerate(before) if cidr != after[index]]
        causes = [invalid(f"{_CIDRS}[{index}]", after[index], _IMMUTABLE) for index in changed]
        return causes + (_validate_cidrs(after) if is_extension else [])


class IPAddressStrategy(Strategy):
    """networking.k8s.io/v1 IPAddress: its name is the address."""

    name_problems = staticmethod(ip_problems)

    def default(self, obj: Object) -> None:
        parent = value_at(obj, "spec.parentRef")
        if parent is not None and parent.get("group") == "":
            del parent["group"]

    def validate(self, obj: Object) -> Causes:
        field, parent = "spec.parentRef", value_at(obj, "spec.parentRef")
        if parent is None:
            return [required(field)]
        group = parent.get("group")
        problems = nameformats.dns1123_subdomain(group) if group else []
        causes = [invalid(f"{field}.group", group, text) for text in problems]
        for name in ("resource", "name", "namespace"):
            if value := parent.get(name):
                causes += [invalid(f"{field}.{name}", value, text) for text in nameformats.path_segment(value)]
            elif name != "namespace":
                causes.append(required(f"{field}.{name}"))
        return causes

    def validate_update(self, new: Object, old: Object) -> Causes:
        field = "spec.parentRef"
        return self.validate(new) + immutable(field, value_at(new, field), value_at(old, field))


def _validate_cidrs(cidrs: list[str]) -> Causes:
    if not cidrs:
        return [required(_CIDRS, "at least one CIDR required")]
    if len(cidrs) > 2:
        return [invalid(_CIDRS, {"CIDRs": cidrs}, "may only hold up to 2 values")]
    causes = [
        invalid(f"{_CIDRS}[{index}]", cidr, text) for index, cidr in enumerate(cidrs) for text in cidr_problems(cidr)
    ]
    families = [cidr_family(cidr) for cidr in cidrs]
    if len(families) == 2 and families[0] == families[1] != 0:
        causes.append(invalid(_CIDRS, cidrs, _ONE_PER_FAMILY))
    return causes
