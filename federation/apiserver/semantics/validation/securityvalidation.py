"""Validate the security contexts of pods and containers. Options for Windows are left to members."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.fielderrors import Causes, duplicate, invalid, not_supported, one_of, required
from federation.apiserver.semantics.validation.volumevalidation import validate_relative_path

Fields = Mapping[str, Any]

_ID_MAX = 2**31 - 1
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_TEXT = f"^({_SEGMENT}[\\./])*{_SEGMENT}$"
_SYSCTL = re.compile(_SYSCTL_TEXT)
_SYSCTL_CHARS_MAX = 253


def validate_security_context(context: Fields, field: str, *, host_users: bool) -> Causes:
    """Validate the security context of a container."""
    causes = _validate_ids(context, field, ("runAsUser", "runAsGroup"))
    mount = context.get("procMount")
    causes += one_of(f"{field}.procMount", mount, ("Default", "Unmasked"))
    if host_users and mount == "Unmasked":
        causes.append(invalid(f"{field}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    causes += _validate_seccomp(context.get("seccompProfile"), f"{field}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        refused = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            causes.append(invalid(field, dict(context), f"{refused} `privileged` to true"))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            causes.append(invalid(field, dict(context), f"{refused} `capabilities.Add` CAP_SYS_ADMIN"))
    return causes + _validate_app_armor(context.get("appArmorProfile"), f"{field}.appArmorProfile")


def validate_pod_security(context: Fields, field: str) -> Causes:
    """Validate the security context of a pod."""
    causes = _validate_ids(context, field, ("fsGroup", "runAsUser", "runAsGroup"))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        causes += _validate_id(group, f"{field}.supplementalGroups[{index}]")
    causes += _validate_sysctls(context.get("sysctls") or (), f"{field}.sysctls")
    causes += one_of(f"{field}.fsGroupChangePolicy", context.get("fsGroupChangePolicy"), ("Always", "OnRootMismatch"))
    causes += _validate_seccomp(context.get("seccompProfile"), f"{field}.seccompProfile")
    causes += _validate_app_armor(context.get("appArmorProfile"), f"{field}.appArmorProfile")
    policy = context.get("supplementalGroupsPolicy")
    causes += one_of(f"{field}.supplementalGroupsPolicy", policy, ("Merge", "Strict"))
    return causes + one_of(
        f"{field}.seLinuxChangePolicy", context.get("seLinuxChangePolicy"), ("MountOption", "Recursive")
    )


def _validate_ids(context: Fields, field: str, names: Sequence[str]) -> Causes:
    return [found for name in names for found in _validate_id(context.get(name), f"{field}.{name}")]


def _validate_id(number: int | None, field: str) -> Causes:
    if number is None or 0 <= number <= _ID_MAX:
        return []
    return [invalid(field, number, f"must be between 0 and {_ID_MAX}, inclusive")]


def _validate_sysctls(sysctls: Sequence[Fields], field: str) -> Causes:
    causes: Causes = []
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        at, name = f"{field}[{index}].name", sysctl.get("name") or ""
        if not name:
            causes.append(required(at))
        elif len(name) > _SYSCTL_CHARS_MAX or not _SYSCTL.fullmatch(name):
            text = f"must have at most {_SYSCTL_CHARS_MAX} characters and match regex {_SYSCTL_TEXT}"
            causes.append(invalid(at, name, text))
        elif name in seen:
            causes.append(duplicate(at, name))
        seen.add(name)
    return causes


def _validate_seccomp(profile: Fields | None, field: str) -> Causes:
    if profile is None:
        return []
    type_, path = profile.get("type") or "", profile.get("localhostProfile")
    causes: Causes = []
    if not type_:
        causes.append(required(f"{field}.type", "type is required when seccompProfile is set"))
    elif type_ not in _PROFILES:
        causes.append(not_supported(f"{field}.type", type_, _PROFILES))
    at = f"{field}.localhostProfile"
    if type_ == "Localhost":
        if path is None:
            return [*causes, required(at, "must be set when seccomp type is Localhost")]
        return causes + validate_relative_path(path, at)
    if path is not None:
        causes.append(invalid(at, dict(profile), "can only be set when seccomp type is Localhost"))
    return causes


def _validate_app_armor(profile: Fields | None, field: str) -> Causes:
    if profile is None:
        return []
    type_, name = profile.get("type") or "", profile.get("localhostProfile")
    at = f"{field}.localhostProfile"
    if not type_:
        return [required(f"{field}.type", "type is required when appArmorProfile is set")]
    if type_ not in _PROFILES:
        return [not_supported(f"{field}.type", type_, _PROFILES)]
    if type_ != "Localhost":
        return [] if name is None else [invalid(at, name, "can only be set when AppArmor type is Localhost")]
    if not name:
        return [required(at, "must be set when AppArmor type is Localhost")]
    return [] if name == name.strip() else [invalid(at, name, "must not be padded with whitespace")]
