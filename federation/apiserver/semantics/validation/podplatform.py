"""Validate what depends on a pod's operating system, network and resources as a whole."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from federation.apimachinery import nameformats
from federation.apimachinery import quantity as quantities
from federation.apimachinery.fielderrors import Causes, duplicate, forbidden, invalid, problems_of, required

Fields = Mapping[str, Any]

_LINUX_ONLY: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
)
_LINUX_ONLY_IN_CONTAINERS: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_LINUX_ONLY_IN_SPECS: Final = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def validate_platform(spec: Fields, field: str) -> Causes:
    """Validate that security contexts fit the operating system that the pod names."""
    system = (spec.get("os") or {}).get("name")
    context = spec.get("securityContext") or {}
    if system == "linux":
        places = [("", context), *((f"{at}.", inner) for at, inner in _contexts(spec))]
        return [
            forbidden(f"{field}.{at}securityContext.windowsOptions", "windows options cannot be set for a linux pod")
            for at, each in places
            if each.get("windowsOptions") is not None
        ]
    if system != "windows":
        return []
    text = "cannot be set for a windows pod"
    causes = [forbidden(f"{field}.securityContext.{name}", text) for name in _LINUX_ONLY if name in context]
    causes += [
        forbidden(f"{field}.{name}", text)
        for name in _LINUX_ONLY_IN_SPECS
        if (spec.get(name) is not None if name in {"hostUsers", "shareProcessNamespace"} else spec.get(name))
    ]
    return causes + [
        forbidden(f"{field}.{at}.securityContext.{name}", text)
        for at, each in _contexts(spec)
        for name in _LINUX_ONLY_IN_CONTAINERS
        if name in each
    ]


def validate_host_ports(spec: Fields, field: str) -> Causes:
    """Validate that ports in the network of the node are those of the containers."""
    if not spec.get("hostNetwork"):
        return []
    text = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{field}.{name}[{index}].ports[{number}].hostPort", port["hostPort"], text)
        for name in ("containers", "initContainers")
        for index, container in enumerate(spec.get(name) or ())
        for number, port in enumerate(container.get("ports") or ())
        if port.get("hostPort") and port["hostPort"] != port.get("containerPort")
    ]


def validate_pod_claims(claims: Sequence[Fields], field: str) -> Causes:
    """Validate the claims of devices that a pod uses."""
    causes: Causes = []
    names: set[str] = set()
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        at, name = f"{field}[{index}]", claim.get("name") or ""
        if name in names:
            causes.append(duplicate(f"{at}.name", name))
        names.add(name)
        if name:
            causes += problems_of(f"{at}.name", name, nameformats.dns1123_label(name))
        else:
            causes.append(required(f"{at}.name"))
        given = [source for source in sources if claim.get(source) is not None]
        if not given:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            causes.append(invalid(at, dict(claim), text))
        elif len(given) > 1:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            causes.append(invalid(at, dict(claim), text))
        for source in given:
            causes += problems_of(f"{at}.{source}", claim[source], nameformats.dns1123_subdomain(claim[source]))
    return causes


def validate_huge_pages(resources: Fields, field: str) -> Causes:
    """Validate that amounts of huge pages are whole pages, and that there is another resource beside them."""
    causes: Causes = []
    amounts = [
        (kind, name, amount) for kind in ("limits", "requests") for name, amount in (resources.get(kind) or {}).items()
    ]
    for kind, name, amount in amounts:
        if (size := _page_bytes(name)) and (wanted := _bytes(amount)) is not None and wanted % size:
            text = f"{amount} is not positive integer multiple of {name}"
            causes.append(invalid(f"{field}.{kind}[{name}]", amount, text))
    has_pages = any(name.startswith("hugepages-") for _, name, _ in amounts)
    if has_pages and not any(name in {"cpu", "memory"} for _, name, _ in amounts):
        causes.append(forbidden(field, "HugePages require cpu or memory"))
    return causes


def validate_aggregate(spec: Fields, field: str) -> Causes:
    """Validate that what a pod requests as a whole covers what its containers request."""
    requests = (spec.get("resources") or {}).get("requests") or {}
    causes: Causes = []
    for name, amount in requests.items():
        try:
            least = sum(map(quantities.parse, _requests(spec, name)), start=quantities.parse("0"))
            if quantities.parse(amount) < least:
                text = f"must be greater than or equal to aggregate container requests of {least}"
                causes.append(invalid(f"{field}.resources.requests[{name}]", amount, text))
        except ValueError:
            continue  # reported where it is
    return causes


def _requests(spec: Fields, name: str) -> Iterator[Any]:
    """Yield what the containers that run together request of a resource."""
    for container in spec.get("containers") or ():
        if (amount := ((container.get("resources") or {}).get("requests") or {}).get(name)) is not None:
            yield amount
    for container in spec.get("initContainers") or ():
        amount = ((container.get("resources") or {}).get("requests") or {}).get(name)
        if container.get("restartPolicy") == "Always" and amount is not None:
            yield amount


def _contexts(spec: Fields) -> Iterator[tuple[str, Fields]]:
    for name in _LISTS:
        for index, container in enumerate(spec.get(name) or ()):
            yield f"{name}[{index}]", container.get("securityContext") or {}


def _page_bytes(name: str) -> int:
    return _bytes(name.removeprefix("hugepages-")) or 0 if name.startswith("hugepages-") else 0


def _bytes(amount: Any) -> int | None:
    try:
        return quantities.parse(amount).nanos // 1_000_000_000
    except ValueError:
        return None
