"""Validate Pods and pod templates, with the errors of kubernetes/pkg/apis/core/validation.

`containervalidation`, `volumevalidation`, `securityvalidation` and `selectorvalidation` check the parts of a pod.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    one_of,
    problems_of,
    required,
)
from federation.apimachinery.objectmeta import validate_labels
from federation.apiserver.semantics.validation.addressvalidation import validate_address
from federation.apiserver.semantics.validation.containervalidation import (
    PodContext,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
    validate_resources,
)
from federation.apiserver.semantics.validation.podannotations import validate_pod_annotations
from federation.apiserver.semantics.validation.podplatform import (
    validate_aggregate,
    validate_host_ports,
    validate_platform,
    validate_pod_claims,
)
from federation.apiserver.semantics.validation.securityvalidation import validate_pod_security
from federation.apiserver.semantics.validation.selectorvalidation import (
    validate_affinity,
    validate_spread,
    validate_toleration,
)
from federation.apiserver.semantics.validation.volumevalidation import validate_volumes

Fields = Mapping[str, Any]

_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_INT32_MAX = 2**31 - 1
_NAMESERVERS_MAX, _SEARCHES_MAX, _SEARCH_CHARS_MAX = 3, 32, 2048
_SEARCH = re.compile(r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*")
_SEARCH_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start"
    " and end with an alphanumeric character"
)


def validate_template(template: Fields, field: str, *, claims: Iterable[str] = ()) -> Causes:
    """Validate a pod template. `claims` names the volumes that a StatefulSet adds to each pod."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    causes = validate_labels(metadata.get("labels"), f"{field}.labels")
    for key in metadata.get("annotations") or ():
        causes += problems_of(f"{field}.annotations", key, nameformats.qualified_name(key.lower()))
    causes += validate_pod_annotations(metadata.get("annotations") or {}, spec, f"{field}.annotations")
    causes += validate_pod_spec(spec, f"{field}.spec", claims=claims)
    if spec.get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        causes.append(forbidden(f"{field}.spec.ephemeralContainers", text))
    return causes


def validate_pod_spec(spec: Fields, field: str, *, claims: Iterable[str] = ()) -> Causes:
    """Validate the spec of a pod, whose containers may also mount the volumes in `claims`."""
    listed: Sequence[Fields] = spec.get("volumes") or ()
    if claims:
        added: list[Fields] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        replaced = {volume["name"] for volume in added}
        listed = [*added, *(volume for volume in listed if volume.get("name") not in replaced)]
    volumes, causes = validate_volumes(listed, f"{field}.volumes")
    pod = PodContext(
        volumes,
        restart_policy=spec.get("restartPolicy") or "",
        grace_period_s=spec.get("terminationGracePeriodSeconds"),
        host_users=spec.get("hostUsers") is not False,
    )
    names: set[str] = set()
    if containers := spec.get("containers"):
        causes += validate_containers(containers, f"{field}.containers", pod, names)
    else:
        causes.append(required(f"{field}.containers"))
    causes += validate_init_containers(spec.get("initContainers") or (), f"{field}.initContainers", pod, names)
    if ephemeral := spec.get("ephemeralContainers"):
        causes += validate_ephemeral_containers(ephemeral, f"{field}.ephemeralContainers", pod, names)
    causes += one_of(f"{field}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
    causes += one_of(f"{field}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    causes += validate_labels(spec.get("nodeSelector"), f"{field}.nodeSelector")
    if context := spec.get("securityContext"):
        causes += validate_pod_security(context, f"{field}.securityContext")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        causes.append(invalid(f"{field}.securityContext.shareProcessNamespace", True, text))
    causes += validate_affinity(spec.get("affinity") or {}, f"{field}.affinity")
    causes += _validate_dns(spec, f"{field}.dnsConfig")
    causes += _validate_gates(spec, field)
    causes += validate_spread(spec.get("topologySpreadConstraints") or (), f"{field}.topologySpreadConstraints")
    causes += _validate_names(spec, field)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 0 < deadline <= _INT32_MAX:
        text = f"must be between 1 and {_INT32_MAX}, inclusive"
        causes.append(invalid(f"{field}.activeDeadlineSeconds", deadline, text))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        causes += validate_toleration(toleration, f"{field}.tolerations[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        causes += _validate_alias(alias, f"{field}.hostAliases[{index}]")
    causes += one_of(f"{field}.preemptionPolicy", spec.get("preemptionPolicy"), ("Never", "PreemptLowerPriority"))
    if resources := spec.get("resources"):
        causes += validate_resources(resources, f"{field}.resources") + validate_aggregate(spec, field)
    causes += validate_host_ports(spec, field)
    causes += validate_pod_claims(spec.get("resourceClaims") or (), f"{field}.resourceClaims")
    return causes + _validate_os(spec.get("os"), f"{field}.os") + validate_platform(spec, field)


def _validate_gates(spec: Fields, field: str) -> Causes:
    causes: Causes = []
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType") or ""
        causes += problems_of(f"{field}.readinessGates[{index}].conditionType", kind, nameformats.qualified_name(kind))
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        at, name = f"{field}.schedulingGates[{index}]", gate.get("name") or ""
        causes += problems_of(at, name, nameformats.qualified_name(name))
        if name in seen:
            causes.append(duplicate(at, name))
        seen.add(name)
    return causes


def _validate_names(spec: Fields, field: str) -> Causes:
    causes: Causes = []
    for name in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        value = spec.get(name)
        if value or (value is not None and name == "runtimeClassName"):
            causes += problems_of(f"{field}.{name}", value, nameformats.dns1123_subdomain(value))
    for name in ("hostname", "subdomain"):
        if value := spec.get(name):
            causes += problems_of(f"{field}.{name}", value, nameformats.dns1123_label(value))
    return causes


def _validate_os(system: Fields | None, field: str) -> Causes:
    if system is None:
        return []
    name = system.get("name") or ""
    return one_of(field, name, ("linux", "windows")) if name else [required(f"{field}.name")]


def _validate_alias(alias: Fields, field: str) -> Causes:
    causes = validate_address(alias.get("ip") or "", f"{field}.ip")
    for index, name in enumerate(alias.get("hostnames") or ()):
        causes += problems_of(f"{field}.hostnames[{index}]", name, nameformats.dns1123_subdomain(name))
    return causes


def _validate_dns(spec: Fields, field: str) -> Causes:
    config = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or ()
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(field, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not servers:
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{field}.nameservers", text)]
    if not config:
        return []
    causes: Causes = []
    if len(servers) > _NAMESERVERS_MAX:
        text = f"must not have more than {_NAMESERVERS_MAX} nameservers"
        causes.append(invalid(f"{field}.nameservers", servers, text))
    for index, server in enumerate(servers):
        causes += validate_address(server, f"{field}.nameservers[{index}]")
    causes += _validate_searches(config.get("searches") or (), f"{field}.searches")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            causes.append(required(f"{field}.options[{index}]", "must not be empty"))
    return causes


def _validate_searches(searches: Sequence[str], field: str) -> Causes:
    causes: Causes = []
    if len(searches) > _SEARCHES_MAX:
        causes.append(invalid(field, searches, f"must not have more than {_SEARCHES_MAX} search paths"))
    if len(" ".join(searches)) > _SEARCH_CHARS_MAX:
        text = f"must not have more than {_SEARCH_CHARS_MAX} characters (including spaces) in the search list"
        causes.append(invalid(field, searches, text))
    for index, search in enumerate(searches):
        name = search.removesuffix(".")
        if search == ".":
            continue
        if len(name) > 253:
            causes.append(invalid(f"{field}[{index}]", name, "must be no more than 253 characters"))
        if not _SEARCH.fullmatch(name):
            causes.append(invalid(f"{field}[{index}]", name, _SEARCH_TEXT))
    return causes
