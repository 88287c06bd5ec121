"""The parts of a pod that its subresources change: `ephemeralcontainers` (kubectl debug) and `resize`.

A request carries the whole pod. Everything but the part is taken from the live pod; then the change is validated. A
kubelet of a member acts on the change; this server only stores it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from federation.apimachinery.fielderrors import Causes, forbidden, invalid
from federation.apimachinery.resources import Object

EPHEMERAL: Final = "ephemeralcontainers"
RESIZE: Final = "resize"

Fields = Mapping[str, Any]
_RESIZED: Final = ("cpu", "memory")
_LISTS: Final = ("initContainers", "containers")
_MIRROR: Final = "kubernetes.io/config.mirror"
_KEPT: Final = frozenset({"managedFields", "resourceVersion"})
_ONLY: Final = "only cpu and memory resources are mutable"


def keep_part(part: str, new: Object, old: Object) -> None:
    """Reset everything in `new` except the part, in place."""
    wanted = new["spec"]
    new["metadata"] = {
        **{name: value for name, value in old["metadata"].items() if name not in _KEPT},
        **{name: value for name, value in new["metadata"].items() if name in _KEPT},
    }
    if "status" in old:
        new["status"] = old["status"]
    if part == EPHEMERAL:
        new["spec"] = _with(old["spec"], "ephemeralContainers", wanted.get("ephemeralContainers"))
        return
    if any(len(wanted.get(name) or ()) != len(old["spec"].get(name) or ()) for name in _LISTS):
        return  # validation refuses it
    spec = old["spec"]
    for name in _LISTS:
        if containers := wanted.get(name):
            spec = _with(spec, name, _with_resources(containers, old["spec"][name]))
    new["spec"] = spec


def _with(spec: Object, name: str, value: Any) -> Object:
    kept = {field: present for field, present in spec.items() if field != name}
    return {**kept, name: value} if value else kept


def _with_resources(new: Sequence[Object], old: Sequence[Object]) -> list[Object]:
    """Return the old containers with the new resources; the new ones if they have other names."""
    if any(after.get("name") != before.get("name") for after, before in zip(new, old, strict=True)):
        return list(new)
    merged = []
    for after, before in zip(new, old, strict=True):
        container = {**before, "resources": after.get("resources") or {}}
        container.pop("resizePolicy", None)
        if after.get("resizePolicy"):
            container["resizePolicy"] = after["resizePolicy"]
        merged.append(container)
    return merged


def validate_part(part: str, new: Object, old: Object, validate: Callable[[Object], Causes]) -> Causes:
    """Return the causes of a refused change of a part; `validate` checks the whole pod."""
    what = "do not support ephemeral containers" if part == EPHEMERAL else "cannot be resized"
    if _MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("", f"static pods {what}")]
    if part == RESIZE and (old["spec"].get("os") or {}).get("name") == "windows":
        return [forbidden("", f"windows pods {what}")]
    causes = validate(new)
    return causes + (_validate_ephemeral(new, old) if part == EPHEMERAL else _validate_resize(new, old, causes))


def _validate_ephemeral(new: Object, old: Object) -> Causes:
    causes: Causes = []
    at = "spec.ephemeralContainers"
    present = {container.get("name"): container for container in new["spec"].get("ephemeralContainers") or ()}
    for before in old["spec"].get("ephemeralContainers") or ():
        name = before.get("name")
        if name not in present:
            causes.append(forbidden(at, f'existing ephemeral containers "{name}" may not be removed\n'))
        elif present[name] != before:
            causes.append(forbidden(at, f'existing ephemeral containers "{name}" may not be changed\n'))
    return causes


def _validate_resize(new: Object, old: Object, problems: Causes) -> Causes:
    causes: Causes = []
    if (old.get("status") or {}).get("qosClass", qos_class(old["spec"])) != qos_class(new["spec"]):
        text = "Pod QOS Class may not change as a result of resizing"
        causes.append(invalid("spec", (new.get("status") or {}).get("qosClass", ""), text))
    if not _is_supported(old):
        causes.append(forbidden("spec", "Pod running on node without support for resize"))
    if order := _validate_order(new["spec"], old["spec"]):
        return causes + order
    for name in _LISTS:
        for index, before in enumerate(old["spec"].get(name) or ()):
            causes += _validate_removed(new["spec"][name][index], before, f"spec.{name}[{index}].resources")
    changed = [
        (name, index)
        for name in _LISTS
        for index, before in enumerate(old["spec"].get(name) or ())
        if _without_resized(new["spec"][name][index]) != _without_resized(before)
    ]
    for name, index in changed:
        init = f"spec.{name}[{index}]", "only cpu and memory resources for init or sidecar containers are mutable"
        causes.append(forbidden(*(init if name == "initContainers" else ("spec", _ONLY))))
    if not causes and not problems and _without_containers(new["spec"]) != _without_containers(old["spec"]):
        causes.append(forbidden("spec", _ONLY))
    return causes


def _is_supported(pod: Object) -> bool:
    """Return False if the kubelet of the pod's node does not report resources, as an old one."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        if (container.get("state") or {}).get("running") is not None:
            return container.get("resources") is not None
    return True


def _validate_order(new: Fields, old: Fields) -> Causes:
    causes: Causes = []
    for name in ("containers", "initContainers"):
        after, before = new.get(name) or (), old.get(name) or ()
        if len(after) != len(before):
            causes.append(forbidden(f"spec.{name}", f"{name} may not be added or removed on resize"))
            continue
        for index, (one, other) in enumerate(zip(after, before, strict=True)):
            if one.get("name") != other.get("name"):
                text = f"{name} may not be renamed or reordered on resize"
                causes.append(forbidden(f"spec.{name}[{index}].name", text))
    return causes


def _validate_removed(new: Fields, old: Fields, field: str) -> Causes:
    causes: Causes = []
    for part in ("requests", "limits"):
        after = (new.get("resources") or {}).get(part) or {}
        before = (old.get("resources") or {}).get(part) or {}
        if before.keys() - after.keys():
            causes.append(forbidden(f"{field}.{part}", f"resource {part} cannot be removed"))
    return causes


def _without_resized(container: Fields) -> Object:
    resources = dict(container.get("resources") or {})
    for part in ("requests", "limits"):
        resources[part] = {k: v for k, v in (resources.get(part) or {}).items() if k not in _RESIZED}
    return {**container, "resources": resources}


def _without_containers(spec: Fields) -> Object:
    return {name: value for name, value in spec.items() if name not in _LISTS}


def qos_class(spec: dict[str, Any]) -> str:
    """Return the QoS class of a pod: Guaranteed, Burstable or BestEffort."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    resources = [_compute_resources(container) for container in containers]
    if not any(requests or limits for requests, limits in resources):
        return "BestEffort"
    if all(limits.keys() >= {"cpu", "memory"} and requests == limits for requests, limits in resources):
        return "Guaranteed"
    return "Burstable"


def _compute_resources(container: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the (requests, limits) of cpu and memory."""
    resources = container.get("resources") or {}
    requests, limits = (
        {name: amount for name, amount in (resources.get(part) or {}).items() if name in {"cpu", "memory"}}
        for part in ("requests", "limits")
    )
    return requests, limits
