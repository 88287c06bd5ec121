"""Validate Services, Ingresses, IngressClasses and NetworkPolicies."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, duplicate, forbidden, invalid, not_supported, one_of, required
from federation.apimachinery.objectmeta import validate_labels
from federation.apiserver.semantics.defaults.servicefamilies import (
    DUAL_STACK,
    FAMILIES,
    HEADLESS,
    SINGLE_STACK,
    addresses_of,
    family_of,
    has_health_check,
)
from federation.apiserver.semantics.validation.addressvalidation import validate_network
from federation.apiserver.semantics.validation.containervalidation import validate_unique
from federation.apiserver.semantics.validation.endpointvalidation import validate_policy_rules
from federation.apiserver.semantics.validation.probevalidation import validate_port
from federation.apiserver.semantics.validation.selectorvalidation import validate_label_selector

Fields = Mapping[str, Any]

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITY_S_MAX = 86_400
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


def validate_service(obj: Fields) -> Causes:
    """Validate a Service."""
    spec = obj.get("spec") or {}
    kind = spec.get("type")
    causes = one_of("spec.type", kind, _TYPES)
    ports = spec.get("ports") or ()
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        causes.append(required("spec.ports"))
    if kind == "ExternalName":
        name = spec.get("externalName") or ""
        if not name:
            causes.append(required("spec.externalName"))
        else:
            causes += [
                invalid("spec.externalName", name, text) for text in nameformats.dns1123_subdomain(name.rstrip("."))
            ]
    causes += validate_labels(spec.get("selector"), "spec.selector")
    causes += one_of("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    causes += _validate_families(spec)
    if spec.get("loadBalancerClass"):
        field, class_name = "spec.loadBalancerClass", spec["loadBalancerClass"]
        causes += [invalid(field, class_name, text) for text in nameformats.qualified_name(class_name)]
        if kind != "LoadBalancer":
            causes.append(forbidden(field, "may only be used when `type` is 'LoadBalancer'"))
    return causes + _validate_ports(ports)


def has_fitting_type(spec: Any, field: str) -> Causes:
    """Check the fields of a Service that only some types have."""
    spec = spec or {}
    kind, policy = spec.get("type"), spec.get("externalTrafficPolicy")
    is_balancer = kind == "LoadBalancer"
    causes: Causes = []
    if is_balancer and spec.get("clusterIP") == "None":
        causes.append(invalid(f"{field}.clusterIPs[0]", "None", "may not be set to 'None' for LoadBalancer services"))
    if kind == "ClusterIP":
        text = "may not be used when `type` is 'ClusterIP'"
        ports = enumerate(spec.get("ports") or ())
        causes += [forbidden(f"{field}.ports[{i}].nodePort", text) for i, port in ports if port.get("nodePort")]
    if policy and kind not in {"NodePort", "LoadBalancer"} and not (kind == "ClusterIP" and spec.get("externalIPs")):
        text = "may only be set for externally-accessible services"
        causes.append(invalid(f"{field}.externalTrafficPolicy", policy, text))
    if spec.get("allocateLoadBalancerNodePorts") is not None and not is_balancer:
        text = "may only be used when `type` is 'LoadBalancer'"
        causes.append(forbidden(f"{field}.allocateLoadBalancerNodePorts", text))
    # The path has a capital letter, as in kube-apiserver.
    for index, source in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        causes += validate_network((source or "").strip(), f"{field}.LoadBalancerSourceRanges[{index}]")
    if spec.get("sessionAffinity") == "ClientIP":
        timeout_s = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
        if timeout_s is not None and not 0 < timeout_s <= _AFFINITY_S_MAX:
            text = f"must be greater than 0 and less than {_AFFINITY_S_MAX}"
            causes.append(invalid(f"{field}.sessionAffinityConfig.clientIP.timeoutSeconds", timeout_s, text))
    return causes


def _validate_families(spec: Fields) -> Causes:
    """Require families that fit the policy and the cluster IPs; members have the networks, the host asks for none."""
    policy, families = spec.get("ipFamilyPolicy"), spec.get("ipFamilies") or []
    addresses = addresses_of(spec)
    causes = one_of("spec.ipFamilyPolicy", policy, (DUAL_STACK[0], DUAL_STACK[1], SINGLE_STACK)) if policy else []
    for index, family in enumerate(families):
        if family not in FAMILIES:
            causes.append(not_supported(f"spec.ipFamilies[{index}]", family, FAMILIES))
        elif family in families[:index]:
            causes.append(duplicate(f"spec.ipFamilies[{index}]", family))
    if (listed := spec.get("clusterIPs")) and spec.get("clusterIP"):
        if listed[0] != spec["clusterIP"]:
            causes.append(invalid("spec.clusterIPs", listed, "first value must match `clusterIP`"))
        if HEADLESS in listed and len(listed) > 1:
            causes.append(invalid("spec.clusterIPs", listed, "'None' must be the first and only value"))
        if len(listed) > len(FAMILIES):
            causes.append(invalid("spec.clusterIPs", listed, "may only hold up to 2 values"))
    for index, (address, family) in enumerate(zip(addresses, families, strict=False)):
        if family in FAMILIES and family_of(address) != family:
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            causes.append(invalid(f"spec.clusterIPs[{index}]", address, text))
    has_fitting_values = not causes
    for count, what in ((len(addresses), "cluster IPs"), (len(families), "IP families")):
        if has_fitting_values and policy == SINGLE_STACK and count > 1:
            text = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            causes.append(invalid("spec.ipFamilyPolicy", policy, text))
    if spec.get("healthCheckNodePort") and not has_health_check(spec):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        causes.append(invalid("spec.healthCheckNodePort", spec["healthCheckNodePort"], text))
    return causes


def _validate_ports(ports: Any) -> Causes:
    causes: Causes = []
    seen_names: set[str] = set()
    seen: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        at = f"spec.ports[{index}]"
        name = port.get("name") or ""
        if not name and len(ports) > 1:
            causes.append(required(f"{at}.name"))
        elif name:
            causes += validate_unique(f"{at}.name", name, nameformats.dns1123_label(name), seen_names)
        number = port.get("port")
        causes += [required(f"{at}.port")] if number is None else validate_port(number, f"{at}.port")
        target = port.get("targetPort")
        if isinstance(target, int):
            causes += validate_port(target, f"{at}.targetPort")
        elif target:
            causes += [invalid(f"{at}.targetPort", target, text) for text in nameformats.port_name(target)]
        causes += one_of(f"{at}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP"))
        if (number, port.get("protocol")) in seen:
            shown = {key: port[key] for key in ("name", "protocol", "port") if key in port}
            causes.append(duplicate(at, shown))
        seen.add((number, port.get("protocol")))
    return causes


def validate_controller(controller: Any, field: str) -> Causes:
    """Validate a controller name: a domain and a path."""
    return validate_domain_path(controller, field) if controller else [required(field)]


def has_host(host: Any, field: str) -> Causes:
    """Check a host of an Ingress's certificates, which may be a wildcard."""
    name = (host or "").removeprefix("*.")
    return [invalid(field, host or "", text) for text in nameformats.dns1123_subdomain(name)]


def has_parameters(parameters: Any, field: str) -> Causes:
    """Check the reference to the parameters of an IngressClass."""
    if parameters is None:
        return []
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    causes = _validate_resource(parameters, field)
    if scope not in {"Cluster", "Namespace"}:
        return [*causes, not_supported(f"{field}.scope", scope or "", ("Cluster", "Namespace"))]
    at = f"{field}.namespace"
    if scope == "Cluster":
        return causes if namespace is None else [*causes, forbidden(at, "`parameters.scope` is set to 'Cluster'")]
    if namespace is None:
        return [*causes, required(at, "`parameters.scope` is set to 'Namespace'")]
    return causes + [invalid(at, namespace, text) for text in nameformats.dns1123_label(namespace)]


def validate_domain_path(controller: Any, field: str) -> Causes:
    """Validate a name of the form domain/path."""
    domain, _, path = str(controller).partition("/")
    if not domain or not path:
        return [invalid(field, controller, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return [invalid(field, domain, text) for text in nameformats.dns1123_subdomain(domain)]


def validate_ingress(obj: Fields) -> Causes:
    """Validate an Ingress."""
    spec = obj.get("spec") or {}
    causes: Causes = []
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        causes.append(invalid("spec", spec, "either `defaultBackend` or `rules` must be specified"))
    if (backend := spec.get("defaultBackend")) is not None:
        causes += _validate_backend(backend, "spec.defaultBackend")
    for number, rule in enumerate(spec.get("rules") or ()):
        host = rule.get("host") or ""
        at = f"spec.rules[{number}]"
        if host:
            plain = host.removeprefix("*.")
            causes += [invalid(f"{at}.host", host, text) for text in nameformats.dns1123_subdomain(plain)]
        http = rule.get("http")
        if http is None:
            continue
        if not http.get("paths"):
            causes.append(required(f"{at}.http.paths"))
        for index, path in enumerate(http.get("paths") or ()):
            causes += _validate_path(path, f"{at}.http.paths[{index}]")
    return causes


def _validate_path(path: Fields, field: str) -> Causes:
    causes: Causes = []
    kind = path.get("pathType")
    if kind is None:
        causes.append(required(f"{field}.pathType", "pathType must be specified"))
    elif kind not in _PATH_TYPES:
        causes.append(not_supported(f"{field}.pathType", kind, _PATH_TYPES))
    text = path.get("path") or ""
    if kind in {"Exact", "Prefix"} and not text.startswith("/"):
        causes.append(invalid(f"{field}.path", text, "must be an absolute path"))
    return causes + _validate_backend(path.get("backend") or {}, f"{field}.backend")


def _validate_backend(backend: Fields, field: str) -> Causes:
    service, resource = backend.get("service"), backend.get("resource")
    if service is None and resource is None:
        return [invalid(field, "", "resource or service backend is required")]
    if service is not None and resource is not None:
        return [invalid(field, "", "cannot set both resource and service backends")]
    if service is None:
        return _validate_resource(resource, f"{field}.resource")
    causes: Causes = []
    name = service.get("name") or ""
    causes += (
        [invalid(f"{field}.service.name", name, text) for text in nameformats.dns1035_label(name)]
        if name
        else [required(f"{field}.service.name")]
    )
    port = service.get("port") or {}
    if not port.get("name") and not port.get("number"):
        causes.append(required(field, "port name or number is required"))
    elif port.get("name"):
        text = port["name"]
        causes += [invalid(f"{field}.service.port.name", text, problem) for problem in nameformats.port_name(text)]
    elif port.get("number"):
        causes += validate_port(port["number"], f"{field}.service.port.number")
    return causes


def _validate_resource(resource: Any, field: str) -> Causes:
    """Validate a reference to an object by group, kind and name."""
    group, kind, name = (resource.get(part) for part in ("apiGroup", "kind", "name"))
    causes: Causes = []
    if group is not None:
        causes += [invalid(f"{field}.apiGroup", group, text) for text in nameformats.dns1123_subdomain(group)]
    for part, value in (("kind", kind), ("name", name)):
        if not value:
            causes.append(required(f"{field}.{part}"))
        else:
            causes += [invalid(f"{field}.{part}", value, text) for text in nameformats.path_segment(value)]
    return causes


def validate_network_policy(obj: Fields) -> Causes:
    """Validate a NetworkPolicy."""
    spec = obj.get("spec") or {}
    causes = validate_label_selector(spec.get("podSelector") or {}, "spec.podSelector")
    causes += validate_policy_rules(spec, "spec")
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        if kind not in {"Ingress", "Egress"}:
            causes.append(not_supported(f"spec.policyTypes[{index}]", kind, ("Egress", "Ingress")))
    return causes
