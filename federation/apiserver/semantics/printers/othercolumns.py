"""Printers of kinds without pod templates: services, configuration, policies, RBAC, events."""

from datetime import datetime
from typing import Any

from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import format_label_selector
from federation.apiserver.semantics.conversion import autoscalerconversion, eventconversion
from federation.apiserver.semantics.printers.table import (
    NONE,
    UNKNOWN,
    Printer,
    Row,
    age,
    columns,
    created,
    labels_text,
    name_and_age,
    name_of,
    part,
    printers,
    selector_text,
    since,
)


def _service(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("type", ""),
        spec.get("clusterIP") or NONE,
        _external_address(obj),
        ",".join(_service_port(port) for port in spec.get("ports") or ()) or NONE,
        age(obj, now),
        labels_text(spec.get("selector")),
    ]


def _external_address(obj: Object) -> str:
    spec = part(obj, "spec")
    addresses = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or NONE
    if spec.get("type") == "LoadBalancer":
        found = _ingress_points(part(obj, "status"))
        return ",".join([*found, *addresses]) or "<pending>"
    return ",".join(addresses) or NONE


def _service_port(port: Any) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}"


def _ingress_points(status: Any) -> list[str]:
    points = (status.get("loadBalancer") or {}).get("ingress") or ()
    return [point.get("ip") or point.get("hostname") or "" for point in points]


def _ingress(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    hosts = [rule.get("host") or "*" for rule in spec.get("rules") or ()]
    ports = "80, 443" if spec.get("tls") else "80"
    points = ",".join(_ingress_points(part(obj, "status")))
    class_name = spec.get("ingressClassName") or NONE
    return [name_of(obj), class_name, _shorten(hosts or ["*"]), points, ports, age(obj, now)]


def _endpoints(obj: Object, now: datetime) -> list[Any]:
    found = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets") or ()
        for address in subset.get("addresses") or ()
        for port in subset.get("ports") or ()
    ]
    return [name_of(obj), _shorten(found), age(obj, now)]


def _endpoint_slice(obj: Object, now: datetime) -> list[Any]:
    ports = [str(port.get("port") or "*") for port in obj.get("ports") or ()]
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return [name_of(obj), obj.get("addressType", ""), _shorten(ports), _shorten(addresses), age(obj, now)]


def _shorten(texts: list[str]) -> str:
    """Join the first three texts and count the others."""
    if not texts:
        return NONE
    return ",".join(texts[:3]) + (f" + {len(texts) - 3} more..." if len(texts) > 3 else "")


def _namespace(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "status").get("phase", ""), age(obj, now)]


def _config_map(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _secret(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def _event(obj: Object, now: datetime) -> list[Any]:
    involved, source = part(obj, "involvedObject"), part(obj, "source")
    series = part(obj, "series")
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or first
    count = series.get("count") or obj.get("count") or 1
    component = source.get("component") or obj.get("reportingComponent") or ""
    host = source.get("host") or obj.get("reportingInstance") or ""
    return [
        since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{involved.get('kind', '').lower()}/{involved.get('name', '')}",
        involved.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        (obj.get("message") or "").strip(),
        since(first, now),
        count,
        name_of(obj),
    ]


def _autoscaler(obj: Object, now: datetime) -> list[Any]:
    if obj.get("apiVersion") == "autoscaling/v1":
        obj = autoscalerconversion.to_v2(obj)
    spec, status = part(obj, "spec"), part(obj, "status")
    target = spec.get("scaleTargetRef") or {}
    return [
        name_of(obj),
        f"{target.get('kind')}/{target.get('name')}",
        _metrics(spec.get("metrics") or [], status.get("currentMetrics") or []),
        str(spec["minReplicas"]) if spec.get("minReplicas") is not None else "<unset>",
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj, now),
    ]


def _metrics(wanted: list[Any], current: list[Any]) -> str:
    if not wanted:
        return NONE
    texts = []
    for index, metric in enumerate(wanted):
        source = metric.get("type", "")
        field = source[:1].lower() + source[1:]
        found = (current[index] if index < len(current) else {}).get(field) or {}
        spec = metric.get(field) or {}
        now, target = found.get("current") or {}, spec.get("target") or {}
        if target.get("averageUtilization") is not None:
            value = now.get("averageUtilization")
            pair = f"{UNKNOWN if value is None else f'{value}%'}/{target['averageUtilization']}%"
        else:
            bound = target.get("averageValue") or target.get("value")
            average = " (avg)" if target.get("averageValue") and source in {"External", "Object"} else ""
            pair = f"{now.get('averageValue') or now.get('value') or UNKNOWN}/{bound}{average}"
        texts.append(f"{spec['name']}: {pair}" if spec.get("name") else pair)
    shown = ", ".join(texts[:2])
    return f"{shown} + {len(texts) - 2} more..." if len(texts) > 2 else shown


def _budget(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    bounds = ["N/A" if spec.get(field) is None else str(spec[field]) for field in ("minAvailable", "maxUnavailable")]
    return [name_of(obj), *bounds, part(obj, "status").get("disruptionsAllowed", 0), age(obj, now)]


def _priority_class(obj: Object, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        obj.get("value", 0),
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def _ingress_class(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    parameters = spec.get("parameters")
    text = NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
        text = f"{parameters.get('kind')}{group}/{parameters.get('name')}"
    return [name_of(obj), spec.get("controller", ""), text, age(obj, now)]


def _network_policy(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), selector_text(part(obj, "spec").get("podSelector")), age(obj, now)]


def _binding(obj: Object, now: datetime) -> list[Any]:
    role = part(obj, "roleRef")
    subjects = obj.get("subjects") or ()
    names = {
        kind: ", ".join(
            f"{subject.get('namespace')}/{subject.get('name')}"
            if kind == "ServiceAccount"
            else str(subject.get("name"))
            for subject in subjects
            if subject.get("kind") == kind
        )
        for kind in ("User", "Group", "ServiceAccount")
    }
    return [name_of(obj), f"{role.get('kind')}/{role.get('name')}", age(obj, now), *names.values()]


def _lease(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "spec").get("holderIdentity") or "", age(obj, now)]


def _quota(obj: Object, now: datetime) -> list[Any]:
    status = part(obj, "status")
    hard, used = status.get("hard") or {}, status.get("used") or {}
    texts: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(hard):
        texts[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [name_of(obj), ", ".join(texts[False]), ", ".join(texts[True]), age(obj, now)]


def _validating_policy(obj: Object, now: datetime) -> list[Any]:
    return _admission_policy(obj, now, "validations")


def _mutating_policy(obj: Object, now: datetime) -> list[Any]:
    return _admission_policy(obj, now, "mutations")


def _admission_policy(obj: Object, now: datetime, counted: str) -> list[Any]:
    spec = obj.get("spec") or {}
    kind = spec.get("paramKind")
    shown = f"{kind.get('apiVersion')}/{kind.get('kind')}" if kind else "<unset>"
    return [name_of(obj), len(spec.get(counted) or ()), shown, age(obj, now)]


def _admission_binding(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    params = spec.get("paramRef") or {}
    namespace = params.get("namespace") or "*"
    shown = "<unset>"
    if params.get("name"):
        shown = f"{namespace}/{params['name']}"
    elif params.get("selector") is not None:
        shown = f"{namespace}/{format_label_selector(params['selector'])}"
    return [name_of(obj), spec.get("policyName", ""), shown, age(obj, now)]


def _runtime_class(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("handler", ""), age(obj, now)]


def _webhooks(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), len(obj.get("webhooks") or ()), age(obj, now)]


_TABLES: dict[str, tuple[str, str, Row]] = {
    "services": ("Name|Type|Cluster-IP|External-IP|Port(s)|Age", "Selector", _service),
    "ingresses.networking.k8s.io": ("Name|Class|Hosts|Address|Ports|Age", "", _ingress),
    "endpoints": ("Name|Endpoints|Age", "", _endpoints),
    "endpointslices.discovery.k8s.io": ("Name|AddressType|Ports|Endpoints|Age", "", _endpoint_slice),
    "namespaces": ("Name|Status|Age", "", _namespace),
    "configmaps": ("Name|Data|Age", "", _config_map),
    "secrets": ("Name|Type|Data|Age", "", _secret),
    "serviceaccounts": ("Name|Age", "", name_and_age),
    "horizontalpodautoscalers.autoscaling": (
        "Name|Reference|Targets|MinPods|MaxPods|Replicas|Age",
        "",
        _autoscaler,
    ),
    "poddisruptionbudgets.policy": (
        "Name|Min Available|Max Unavailable|Allowed Disruptions:integer|Age",
        "",
        _budget,
    ),
    "runtimeclasses.node.k8s.io": ("Name|Handler|Age", "", _runtime_class),
    "priorityclasses.scheduling.k8s.io": (
        "Name|Value:integer|Global-Default:boolean|Age|PreemptionPolicy",
        "",
        _priority_class,
    ),
    "ingressclasses.networking.k8s.io": ("Name|Controller|Parameters|Age", "", _ingress_class),
    "networkpolicies.networking.k8s.io": ("Name|Pod-Selector|Age", "", _network_policy),
    "roles.rbac.authorization.k8s.io": ("Name|Created At:date", "", created),
    "clusterroles.rbac.authorization.k8s.io": ("Name|Created At:date", "", created),
    "rolebindings.rbac.authorization.k8s.io": ("Name|Role|Age", "Users|Groups|ServiceAccounts", _binding),
    "clusterrolebindings.rbac.authorization.k8s.io": ("Name|Role|Age", "Users|Groups|ServiceAccounts", _binding),
    "customresourcedefinitions.apiextensions.k8s.io": ("Name|Created At:date", "", created),
    "limitranges": ("Name|Created At:date", "", created),
    "resourcequotas": ("Name|Request|Limit|Age", "", _quota),
    "leases.coordination.k8s.io": ("Name|Holder|Age", "", _lease),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": ("Name|Webhooks:integer|Age", "", _webhooks),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": ("Name|Webhooks:integer|Age", "", _webhooks),
    "validatingadmissionpolicies.admissionregistration.k8s.io": (
        "Name|Validations:integer|ParamKind|Age",
        "",
        _validating_policy,
    ),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": (
        "Name|Mutations:integer|ParamKind|Age",
        "",
        _mutating_policy,
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": (
        "Name|PolicyName|ParamRef|Age",
        "",
        _admission_binding,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": (
        "Name|PolicyName|ParamRef|Age",
        "",
        _admission_binding,
    ),
}


PRINTERS = printers(_TABLES)

_event_columns = columns("Last Seen|Type|Reason|Object", "Subobject|Source")
_event_columns += columns("Message", "First Seen|Count|Name")
PRINTERS["", "events"] = Printer(_event_columns, _event)
PRINTERS[eventconversion.GROUP, "events"] = Printer(
    _event_columns, lambda obj, now: _event(eventconversion.to_core(obj), now)
)
