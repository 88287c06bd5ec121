"""Validate annotations of pods that mean something to Kubernetes: AppArmor, seccomp, mirror pods, deletion cost.

`podannotations` of a pod template are those of its metadata. Profiles in annotations may not contradict the fields that
replaced them, and an update of a pod may not change its AppArmor profiles.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from federation.apimachinery.fielderrors import Causes, forbidden, invalid
from federation.apiserver.semantics.validation.volumevalidation import validate_relative_path

Fields = Mapping[str, Any]

APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
CONTAINER_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_MIRROR: Final = "kubernetes.io/config.mirror"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_LOCAL: Final = "localhost/"
_RUNTIME: Final = "runtime/default"
_SECCOMP_NAMES: Final = frozenset({_RUNTIME, "docker/default", "unconfined"})
_COST_MAX: Final = 2**31 - 1
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def validate_pod_annotations(annotations: Mapping[str, str], spec: Fields, field: str) -> Causes:
    """Validate the annotations of a pod or template in the metadata at `field`."""
    causes: Causes = []
    for key, value in annotations.items():
        at = f"{field}[{key}]"
        if key == _MIRROR and not spec.get("nodeName"):
            causes.append(invalid(at, value, "must set spec.nodeName if mirror pod annotation is set"))
        elif key == _DELETION_COST and not _is_cost(value):
            causes.append(invalid(at, value, "must be a 32bit integer"))
        elif key == SECCOMP or key.startswith(CONTAINER_SECCOMP):
            causes += _validate_seccomp(value, f"{field}.{key}")
        elif key.startswith(APP_ARMOR):
            name = key.removeprefix(APP_ARMOR)
            if not any(container.get("name") == name for _, container in containers_of(spec)):
                causes.append(invalid(at, name, "container not found"))
            if value and value not in {_RUNTIME, "unconfined"} and not value.startswith(_LOCAL):
                causes.append(invalid(at, value, f'invalid AppArmor profile name: "{value}"'))
    return causes


def validate_annotation_changes(new: Mapping[str, str], old: Mapping[str, str], field: str) -> Causes:
    """Return the causes of annotations that an update of a pod may not change."""
    causes: Causes = []
    for key in {**old, **new}:
        what = (
            "AppArmor annotations" if key.startswith(APP_ARMOR) else "mirror pod annotation" if key == _MIRROR else ""
        )
        if what and new.get(key) != old.get(key):
            verb = "remove or update" if key in old else "add"
            causes.append(forbidden(f"{field}[{key}]", f"may not {verb} {what}"))
    return causes


def validate_matching_profiles(annotations: Mapping[str, str], spec: Fields, field: str) -> Causes:
    """Return the causes of profiles of a new pod whose annotation and field differ."""
    if not any(key == SECCOMP or key.startswith((CONTAINER_SECCOMP, APP_ARMOR)) for key in annotations):
        return []
    whole = spec.get("securityContext") or {}
    causes: Causes = []
    if (text := annotations.get(SECCOMP)) is not None:
        causes += _compare("seccomp", text, whole.get("seccompProfile"), f"{field}.securityContext.seccompProfile")
    for at, container in containers_of(spec):
        name, context = container.get("name") or "", container.get("securityContext") or {}
        place = f"{field}.{at}.securityContext"
        if (text := annotations.get(CONTAINER_SECCOMP + name)) is not None:
            causes += _compare("seccomp", text, context.get("seccompProfile"), f"{place}.seccompProfile")
        if (text := annotations.get(APP_ARMOR + name)) is not None:
            causes += _compare("apparmor", text, context.get("appArmorProfile"), f"{place}.appArmorProfile")
    return causes


def _compare(what: str, text: str, profile: Fields | None, field: str) -> Causes:
    if profile is None:
        return []
    type_, path = profile.get("type") or "", profile.get("localhostProfile") or ""
    found = _to_profile(text)
    if found is None or not type_:
        return []  # reported where it is
    if found[0] != type_:
        return [forbidden(f"{field}.type", f"{what} type in annotation and field must match")]
    if found[1] != path:
        return [forbidden(f"{field}.localhostProfile", f"{what} profile in annotation and field must match")]
    return []


def _to_profile(text: str) -> tuple[str, str] | None:
    if text.startswith(_LOCAL):
        return "Localhost", text.removeprefix(_LOCAL)
    if text in {_RUNTIME, "docker/default"}:
        return "RuntimeDefault", ""
    return ("Unconfined", "") if text == "unconfined" else None


def _validate_seccomp(text: str, field: str) -> Causes:
    if text in _SECCOMP_NAMES:
        return []
    if text.startswith(_LOCAL):
        return validate_relative_path(text.removeprefix(_LOCAL), field)
    return [invalid(field, text, "must be a valid seccomp profile")]


def _is_cost(text: str) -> bool:
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    has_form = (
        digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0") and not text.startswith("+")
    )
    return has_form and -_COST_MAX - 1 <= int(text) <= _COST_MAX


def containers_of(spec: Fields) -> Iterator[tuple[str, Fields]]:
    """Yield all containers of a pod with their fields below its spec."""
    for name in _LISTS:
        listed: Sequence[Fields] = spec.get(name) or ()
        for index, container in enumerate(listed):
            yield f"{name}[{index}]", container
