"""Warnings about pods and pod templates, in kube-apiserver's words and order. Pure.

They are about what is accepted and does not do what its author expects: deprecated labels, annotations and volumes,
lists that name a key twice (server-side apply cannot address their items), ports that hide each other, fractions of
bytes. `volumewarnings.py` has those about files of volumes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from federation.apimachinery import nameformats, quantity
from federation.apiserver.semantics.validation.addresswarnings import address_warnings
from federation.apiserver.semantics.validation.volumewarnings import overlapping_paths

Fields = Mapping[str, Any]
NODE_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
"""Labels of nodes that are deprecated."""
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_NO_PODS: Final = "a null labelSelector results in matching no pod"
_NOTHING: Final[Fields] = {}
_COMPARED_MAX: Final = 10
"""Ports of one number that each further one is compared with: a pod may have thousands."""


def pod_warnings(pod: Any, field: str) -> list[str]:
    """Return the warnings about a pod, or about the pod template at `field`, for example `spec.template`."""
    if not isinstance(pod, Mapping) or not isinstance(spec := pod.get("spec"), Mapping):
        return []
    at = f"{field}." if field else ""
    annotations = (pod.get("metadata") or _NOTHING).get("annotations") or _NOTHING
    containers = list(_containers(spec, f"{at}spec"))
    found = [*_placement(spec, f"{at}spec"), *_annotations(annotations, at)]
    for index, volume in enumerate(spec.get("volumes") or ()):
        found += _volume(volume, f"{at}spec.volumes[{index}]")
    found += overlapping_paths(spec.get("volumes") or ())
    found += _repeated(spec.get("hostAliases"), f"{at}spec.hostAliases", "ip")
    secrets = spec.get("imagePullSecrets") or ()
    found += _repeated(secrets, f"{at}spec.imagePullSecrets", "name")
    found += [
        f'{at}spec.imagePullSecrets[{index}].name: invalid empty name ""'
        for index, secret in enumerate(secrets)
        if not secret.get("name")
    ]
    found += fractions(spec.get("overhead"), f"{at}spec.overhead", ("memory", "ephemeral-storage"))
    if annotations:
        found += _profiles(annotations, spec, containers, at, is_template=bool(field))
    for container, place in containers:
        found += _in_container(container, place)
    found += [*_ports(containers), *_port_names(containers)]
    grace_s = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace_s, int) and grace_s < 0:
        found.append(
            f"{at}spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated"
            " as 1"
        )
    found += _pod_affinity(spec.get("affinity") or _NOTHING, f"{at}spec.affinity")
    for index, server in enumerate((spec.get("dnsConfig") or _NOTHING).get("nameservers") or ()):
        found += address_warnings(f"{at}spec.dnsConfig.nameservers[{index}]", server)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        found += address_warnings(f"{at}spec.hostAliases[{index}].ip", alias.get("ip") or "")
    return found


def fractions(amounts: Any, field: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the warnings about amounts of bytes that are no whole number."""
    if not isinstance(amounts, Mapping):
        return
    for name in names:
        if (value := amounts.get(name)) is not None and quantity.to_milli(str(value)) % 1000:
            yield f'{field}[{name}]: fractional byte value "{value}" is invalid, must be an integer'


def node_term_warnings(term: Fields, field: str, *, checks_values: bool = False) -> Iterator[str]:
    """Yield the warnings about the `matchExpressions` of a node selector."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        at, key = f"{field}.matchExpressions[{index}]", expression.get("key", "")
        if key in NODE_LABELS:
            yield f"{at}.key: {key} is {NODE_LABELS[key]}"
        for position, value in enumerate(expression.get("values") or ()) if checks_values else ():
            for problem in nameformats.label_value(value):
                yield f"{at}.values[{position}]: {value} is invalid, {problem}"


def _containers(spec: Fields, field: str) -> Iterator[tuple[Fields, str]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield container, f"{field}.{kind}[{index}]"


def _placement(spec: Fields, field: str) -> Iterator[str]:
    for label in spec.get("nodeSelector") or ():
        if label in NODE_LABELS:
            yield f"{field}.nodeSelector[{label}]: {NODE_LABELS[label]}"
    if nodes := (spec.get("affinity") or _NOTHING).get("nodeAffinity"):
        at, required = f"{field}.affinity.nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate((nodes.get(required) or _NOTHING).get("nodeSelectorTerms") or ()):
            yield from node_term_warnings(term, f"{at}.{required}.nodeSelectorTerms[{index}]")
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(nodes.get(preferred) or ()):
            place = f"{at}.{preferred}[{index}].preference"
            yield from node_term_warnings(term.get("preference") or _NOTHING, place, checks_values=True)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = f"{field}.topologySpreadConstraints[{index}]", constraint.get("topologyKey")
        if key in NODE_LABELS:
            yield f"{at}.topologyKey: {key} is {NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at}.labelSelector: {_NO_PODS}"


def _pod_affinity(affinity: Fields, field: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or _NOTHING
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(terms.get(required) or ()):
            if term.get("labelSelector") is None:
                yield f"{field}.{kind}.{required}[{index}].labelSelector: {_NO_PODS}"
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(terms.get(preferred) or ()):
            if (term.get("podAffinityTerm") or _NOTHING).get("labelSelector") is None:
                yield f"{field}.{kind}.{preferred}[{index}].podAffinityTerm.labelSelector: {_NO_PODS}"


def _annotations(annotations: Fields, at: str) -> list[str]:
    return [f"{at}metadata.annotations[{key}]: {text}" for key, text in _ANNOTATIONS.items() if key in annotations]


def _profiles(
    annotations: Fields, spec: Fields, containers: Sequence[tuple[Fields, str]], at: str, *, is_template: bool
) -> Iterator[str]:
    """Yield the warnings about annotations that fields of security contexts replaced."""
    use = 'non-functional in v1.27+; use the "seccompProfile" field instead'
    whole = spec.get("securityContext") or _NOTHING
    if whole.get("seccompProfile") is None and _SECCOMP in annotations:
        yield f"{at}metadata.annotations[{_SECCOMP}]: {use}"
    for container, _ in containers:
        context, name = container.get("securityContext") or _NOTHING, container.get("name", "")
        if context.get("seccompProfile") is None and (key := _CONTAINER_SECCOMP + name) in annotations:
            yield f"{at}metadata.annotations[{key}]: {use}"
        key = _APP_ARMOR + name
        # The pods of a template get the field, so their own annotation is no mistake.
        is_alone = is_template and context.get("appArmorProfile") is None and key in annotations
        if is_alone and whole.get("appArmorProfile") != _app_armor(annotations[key]):
            text = 'deprecated since v1.30; use the "appArmorProfile" field instead'
            yield f"{at}metadata.annotations[{key}]: {text}"


def _app_armor(annotation: str) -> Fields | None:
    if annotation in {"", "unconfined"}:
        return {"type": "Unconfined"} if annotation else None
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    prefix, _, profile = annotation.partition("localhost/")
    return {"type": "Localhost", "localhostProfile": profile} if profile and not prefix else None


def _volume(volume: Fields, field: str) -> Iterator[str]:
    for kind, text in _VOLUMES.items():
        if volume.get(kind) is not None:
            yield f"{field}.{'storageOS' if kind == 'storageos' else kind}: {text}"
    template = (volume.get("ephemeral") or _NOTHING).get("volumeClaimTemplate")
    if template is not None:
        yield from claim_warnings(template.get("spec") or _NOTHING, f"{field}.ephemeral.volumeClaimTemplate.spec")


def claim_warnings(spec: Fields, field: str) -> Iterator[str]:
    """Yield the warnings about the spec of a claim."""
    for kind in ("requests", "limits"):
        yield from fractions((spec.get("resources") or _NOTHING).get(kind), f"{field}.resources.{kind}", ("storage",))


def _repeated(items: Any, field: str, key: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items or ()):
        value = item.get(key, "")
        if value in seen:
            yield f'{field}[{index}].{key}: duplicate {key} "{value}"'
        seen.add(value)


def _in_container(container: Fields, field: str) -> Iterator[str]:
    resources = container.get("resources") or _NOTHING
    for name in ("memory", "ephemeral-storage"):
        for kind in ("limits", "requests"):
            yield from fractions(resources.get(kind), f"{field}.resources.{kind}", (name,))
    variables = set()
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name", "")
        if name in variables and not _extends(variable, f"$({name})"):
            yield f'{field}.env[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        variables.add(name)


def _extends(variable: Fields, reference: str) -> bool:
    """Return whether a variable's value contains more than the reference to its previous value."""
    value = variable.get("value") or ""
    return variable.get("valueFrom") is None and value != reference and reference in value


def _ports(containers: Sequence[tuple[Fields, str]]) -> Iterator[str]:
    known: dict[tuple[Any, Any], list[tuple[str, str, int]]] = {}
    for container, field in containers:
        for index, port in enumerate(container.get("ports") or ()):
            at = f"{field}.ports[{index}]"
            address, host_port = port.get("hostIP") or "", port.get("hostPort") or 0
            if address and not host_port:
                yield f"{at}: hostIP set without hostPort: {_shown(port)}"
            others = known.setdefault((port.get("containerPort"), port.get("protocol", "TCP")), [])
            for place, other_address, other_port in others:
                if (address, host_port) == (other_address, other_port):
                    yield f"{at}: duplicate port definition with {place}"
                elif not host_port or not other_port:
                    yield f"{at}: overlapping port definition with {place}"
                elif host_port == other_port and bool(address) != bool(other_address):
                    yield f"{at}: dangerously ambiguous port definition with {place}"
            if len(others) < _COMPARED_MAX:
                others.append((at, address, host_port))


def _shown(port: Fields) -> str:
    """Return a port as Go prints a struct."""
    parts = (
        ("Name", port.get("name") or ""),
        ("HostPort", port.get("hostPort") or 0),
        ("ContainerPort", port.get("containerPort") or 0),
        ("Protocol", port.get("protocol") or "TCP"),
        ("HostIP", port.get("hostIP") or ""),
    )
    return "{" + " ".join(f"{name}:{value}" for name, value in parts) + "}"


def _port_names(containers: Sequence[tuple[Fields, str]]) -> Iterator[str]:
    known: dict[str, str] = {}
    for container, field in containers:
        for index, port in enumerate(container.get("ports") or ()):
            if not (name := port.get("name")):
                continue
            at = f"{field}.ports[{index}]"
            if (first := known.setdefault(name, at)) != at:
                use = f"services and probes that select ports by name will use {first}"
                yield f'{at}: duplicate port name "{name}" with {first}, {use}'
