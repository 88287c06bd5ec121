"""Strategies of Services, Endpoints, Ingresses and NetworkPolicies."""

from collections.abc import Iterable
from typing import ClassVar

from federation.apimachinery import nameformats
from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.fielderrors import Causes, forbidden, invalid, one_of, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import otherdefaults as defaults
from federation.apiserver.semantics.defaults.servicefamilies import (
    complete_families,
    has_health_check,
    keep_allocated,
)
from federation.apiserver.semantics.strategies.base import GenerationStrategy, StatusFields, Strategy, has_changed
from federation.apiserver.semantics.validation.addressvalidation import validate_address
from federation.apiserver.semantics.validation.endpointvalidation import validate_endpoints, validate_slice_content
from federation.apiserver.semantics.validation.fieldrules import Rule, has_format, is_one_of
from federation.apiserver.semantics.validation.kindwarnings import (
    endpoint_slice_warnings,
    ingress_warnings,
    network_policy_warnings,
    service_warnings,
)
from federation.apiserver.semantics.validation.networkvalidation import (
    has_fitting_type,
    has_host,
    has_parameters,
    validate_controller,
    validate_ingress,
    validate_network_policy,
    validate_service,
)


class ServiceStrategy(Strategy):
    """v1 Service; `registry/serviceaddresses.py` allocates addresses and node ports."""

    allow_create_on_update = True
    names_again = False
    records_every_creator = True
    rules = (
        Rule("spec.internalTrafficPolicy", is_one_of("Cluster", "Local")),
        Rule("spec.externalTrafficPolicy", is_one_of("Cluster", "Local", "")),
        Rule("spec.trafficDistribution", is_one_of("PreferClose", "PreferSameZone", "PreferSameNode")),
        Rule("spec.ports[].appProtocol", has_format(nameformats.qualified_name, may_be_empty=False)),
        Rule("spec.externalIPs[]", lambda value, field: validate_address(value or "", field)),
        Rule("spec", has_fitting_type),
    )
    status_always: ClassVar[StatusFields] = {"loadBalancer": {}}
    returns_deleted_object = True

    name_problems = staticmethod(nameformats.dns1123_label)
    default = staticmethod(defaults.default_service)

    def prepare_create(self, obj: Object) -> None:
        complete_families(obj["spec"])

    def prepare_update(self, new: Object, old: Object) -> None:
        """Keep what is allocated and the new manifest does not contain, and fill in families."""
        spec, live = new["spec"], old["spec"]
        if spec["type"] != "ExternalName" and live.get("type") != "ExternalName":
            self._keep(spec, live)
        elif spec["type"] == "ExternalName" and spec.get("internalTrafficPolicy") == live.get("internalTrafficPolicy"):
            spec.pop("internalTrafficPolicy", None)
        complete_families(spec)

    @staticmethod
    def _keep(spec: Object, live: Object) -> None:
        keep_allocated(spec, live)
        ports = {(port.get("protocol"), port.get("port")): port for port in live.get("ports") or ()}
        if spec["type"] in {"NodePort", "LoadBalancer"}:
            for port in spec.get("ports") or ():
                before = ports.get((port.get("protocol"), port.get("port")), {})
                if not port.get("nodePort") and before.get("nodePort"):
                    port["nodePort"] = before["nodePort"]
        elif live.get("type") in {"NodePort", "LoadBalancer"}:
            for port in spec.get("ports") or ():
                before = ports.get((port.get("protocol"), port.get("port")), {})
                if port.get("nodePort") == before.get("nodePort"):
                    port.pop("nodePort", None)
            if spec.get("externalTrafficPolicy") == live.get("externalTrafficPolicy"):
                spec.pop("externalTrafficPolicy", None)

    validate = staticmethod(validate_service)

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new)
        before, after = value_at(old, "spec.clusterIP"), value_at(new, "spec.clusterIP")
        if (
            before
            and after != before
            and "ExternalName" not in {value_at(old, "spec.type"), value_at(new, "spec.type")}
        ):
            causes.append(invalid("spec.clusterIPs[0]", [after], "may not change once set"))
        if has_health_check(new["spec"]) and has_health_check(old["spec"]):
            before, after = value_at(old, "spec.healthCheckNodePort"), value_at(new, "spec.healthCheckNodePort")
            if before and before != after:
                causes.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
        if {value_at(old, "spec.type"), value_at(new, "spec.type")} == {"LoadBalancer"}:
            kind = value_at(new, "spec.loadBalancerClass")
            if kind != value_at(old, "spec.loadBalancerClass"):
                causes.append(invalid("spec.loadBalancerClass", kind, "may not change once set"))
        return causes

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        del old
        return service_warnings(obj)


class EndpointsStrategy(Strategy):
    """v1 Endpoints."""

    allow_create_on_update = True

    default = staticmethod(defaults.default_endpoints)
    validate = staticmethod(validate_endpoints)


class EndpointSliceStrategy(GenerationStrategy):
    """discovery.k8s.io/v1 EndpointSlice."""

    immutable_fields = ("addressType",)

    def has_spec_changed(self, new: Object, old: Object) -> bool:
        """Return True also for other labels, which relate a slice to its Service."""
        return super().has_spec_changed(new, old) or has_changed(new, old, "labels")

    default = staticmethod(defaults.default_endpoint_slice)

    def validate(self, obj: Object) -> Causes:
        kind = obj.get("addressType")
        causes = one_of("addressType", kind, ("FQDN", "IPv4", "IPv6")) if kind else [required("addressType")]
        return causes + validate_slice_content(obj)

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        return endpoint_slice_warnings(obj, is_new=old is None)


class IngressStrategy(GenerationStrategy):
    """networking.k8s.io/v1 Ingress."""

    rules = (
        Rule("spec.tls[].hosts[]", has_host),
        Rule("spec.tls[].secretName", has_format(nameformats.dns1123_subdomain)),
        Rule("spec.ingressClassName", has_format(nameformats.dns1123_subdomain, may_be_empty=False)),
    )
    status_always: ClassVar[StatusFields] = {"loadBalancer": {}}

    validate = staticmethod(validate_ingress)

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        return ingress_warnings(obj) if old is None else ()


class IngressClassStrategy(GenerationStrategy):
    """networking.k8s.io/v1 IngressClass."""

    immutable_fields = ("spec.controller",)
    rules = (Rule("spec.parameters", has_parameters),)

    def validate(self, obj: Object) -> Causes:
        return validate_controller(value_at(obj, "spec.controller"), "spec.controller")


class NetworkPolicyStrategy(GenerationStrategy):
    """networking.k8s.io/v1 NetworkPolicy."""

    names_again = False

    default = staticmethod(defaults.default_network_policy)
    validate = staticmethod(validate_network_policy)

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        del old
        return network_policy_warnings(obj)
