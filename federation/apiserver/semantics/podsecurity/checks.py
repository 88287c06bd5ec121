"""The checks of the Pod Security Standards, with the texts of kube-apiserver. Pure.

A check takes metadata and spec of a valid pod or pod template, and returns the violation, None if there is none.
`CHECKS` says in which versions each holds. `evaluation.py` selects and runs them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from federation.apimachinery.fielderrors import show
from federation.apiserver.semantics.podsecurity.levels import Level

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Violation:
    """Why a check forbids a pod: a short reason for lists, and which parts of the pod."""

    reason: str
    detail: str


CheckPod = Callable[[Fields, Fields], Violation | None]

_CAPABILITIES: Final = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
        *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_SELINUX_TYPES: Final = frozenset(("", "container_t", "container_init_t", "container_kvm_t"))
_SELINUX_TYPES_31: Final = _SELINUX_TYPES | {"container_engine_t"}
_ALLOWED: Final = "allowed"
_SYSCTLS: Final = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    )
)
_SYSCTLS_27: Final = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29: Final = _SYSCTLS_27 | {
    f"net.ipv4.tcp_{name}" for name in ("keepalive_time", "fin_timeout", "keepalive_intvl", "keepalive_probes")
}
_SYSCTLS_32: Final = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
_VOLUMES: Final = frozenset(
    (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"),
        "secret",
    )
)
_PROFILES: Final = frozenset(("Localhost", "RuntimeDefault"))
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def _containers(spec: Fields) -> Iterator[Fields]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(kind) or ()


def _context(part: Fields) -> Fields:
    return part.get("securityContext") or {}


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _plural(word: str, items: Iterable[Any]) -> str:
    return word if len(list(items)) == 1 else f"{word}s"


def _named(containers: list[str], word: str = "container") -> str:
    return f"{_plural(word, containers)} {_quoted(containers)}"


def _uses(names: list[str]) -> str:
    return "uses" if len(names) == 1 else "use"


def _setters(is_pod_bad: bool, containers: list[str]) -> str:
    """Return the parts of a pod that set a forbidden value, "" for none."""
    return " and ".join([*(["pod"] if is_pod_bad else []), *([_named(containers)] if containers else [])])


def _bad(spec: Fields, is_bad: Callable[[Fields], bool]) -> list[str]:
    """Return the names of the containers with a bad security context."""
    return [str(each.get("name") or "") for each in _containers(spec) if is_bad(_context(each))]


# -- baseline


def _app_armor(metadata: Fields, spec: Fields) -> Violation | None:
    def type_of(context: Fields) -> str | None:
        profile = context.get("appArmorProfile")
        return None if profile is None else str(profile.get("type") or "")

    def is_bad(context: Fields) -> bool:
        return type_of(context) not in {None, *_PROFILES}

    contexts = [_context(spec), *map(_context, _containers(spec))]
    values = sorted({str(type_of(context)) for context in contexts if is_bad(context)})
    annotations = sorted(
        f"{key}={show(value)}"
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(_APPARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    setters = [each for each in [_setters(is_bad(_context(spec)), _bad(spec, is_bad))] if each]
    values += annotations
    if annotations:
        setters.append(_plural("annotation", annotations))
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(values)}"
    return Violation(_plural("forbidden AppArmor profile", values), detail)


def _capabilities(_: Fields, spec: Fields) -> Violation | None:
    def added(context: Fields) -> set[str]:
        return set((context.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES

    return _forbidden_capabilities("non-default capabilities", spec, added, [])


def _forbidden_capabilities(
    reason: str, spec: Fields, added: Callable[[Fields], set[str]], details: list[str]
) -> Violation | None:
    if bad := _bad(spec, lambda context: bool(added(context))):
        every: set[str] = set().union(*(added(_context(each)) for each in _containers(spec)))
        details = [
            *details,
            f"{_named(bad)} must not include {_quoted(sorted(every))} in securityContext.capabilities.add",
        ]
    return Violation(reason, "; ".join(details)) if details else None


def _host_namespaces(_: Fields, spec: Fields) -> Violation | None:
    used = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return Violation("host namespaces", ", ".join(used)) if used else None


def _host_paths(_: Fields, spec: Fields) -> Violation | None:
    bad = [str(volume.get("name")) for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", _named(bad, "volume")) if bad else None


def _host_ports(_: Fields, spec: Fields) -> Violation | None:
    used = {
        str(each.get("name")): {str(port["hostPort"]) for port in each.get("ports") or () if port.get("hostPort")}
        for each in _containers(spec)
    }
    bad = [name for name, ports in used.items() if ports]
    if not bad:
        return None
    numbers = sorted(set().union(*used.values()))
    return Violation("hostPort", f"{_named(bad)} {_uses(bad)} {_plural('hostPort', numbers)} {', '.join(numbers)}")


def _probe_hosts(_: Fields, spec: Fields) -> Violation | None:
    used: dict[str, set[str]] = {}
    for each in _containers(spec):
        handlers = [each.get(name) for name in _PROBES] + list((each.get("lifecycle") or {}).values())
        actions = [
            handler.get(action) or {}
            for handler in handlers
            if isinstance(handler, dict)
            for action in ("httpGet", "tcpSocket")
        ]
        if hosts := {str(action["host"]) for action in actions if action.get("host")}:
            used[str(each.get("name"))] = hosts
    if not used:
        return None
    bad, every = sorted(used), sorted(set().union(*used.values()))
    detail = f"{_named(bad)} {_uses(bad)} {_plural('probe or lifecycle host', every)} {_quoted(every)}"
    return Violation("probe or lifecycle host", detail)


def _privileged(_: Fields, spec: Fields) -> Violation | None:
    bad = _bad(spec, lambda context: bool(context.get("privileged")))
    return Violation("privileged", f"{_named(bad)} must not set securityContext.privileged=true") if bad else None


def _proc_mount(_: Fields, spec: Fields) -> Violation | None:
    def is_bad(context: Fields) -> bool:
        return context.get("procMount") not in {None, "Default"}

    if not (bad := _bad(spec, is_bad)):
        return None
    values = sorted({_context(each)["procMount"] for each in _containers(spec) if is_bad(_context(each))})
    return Violation("procMount", f"{_named(bad)} must not set securityContext.procMount to {_quoted(values)}")


def _seccomp_annotations(metadata: Fields, spec: Fields) -> Violation | None:
    annotations = metadata.get("annotations") or {}
    keys = [_SECCOMP_POD, *(f"{_SECCOMP}{each.get('name')}" for each in _containers(spec))]
    bad = sorted(
        {
            f"{key}={show(annotations[key])}"
            for key in keys
            if key in annotations
            and annotations[key] not in ("runtime/default", "docker/default")
            and not annotations[key].startswith("localhost/")
        }
    )
    return Violation("seccompProfile", f"forbidden {_plural('annotation', bad)} {', '.join(bad)}") if bad else None


def _seccomp_type(context: Fields) -> str | None:
    profile = context.get("seccompProfile")
    return None if profile is None else str(profile.get("type") or "")


def _seccomp(_: Fields, spec: Fields) -> Violation | None:
    def is_bad(context: Fields) -> bool:
        return _seccomp_type(context) not in {None, *_PROFILES}

    setters = _setters(is_bad(_context(spec)), _bad(spec, is_bad))
    if not setters:
        return None
    contexts = [_context(spec), *map(_context, _containers(spec))]
    values = sorted({str(_seccomp_type(context)) for context in contexts if is_bad(context)})
    return Violation(
        "seccompProfile", f"{setters} must not set securityContext.seccompProfile.type to {_quoted(values)}"
    )


def _selinux(types: frozenset[str]) -> CheckPod:
    def problems(context: Fields) -> tuple[str, bool, bool] | None:
        """Return the forbidden type (_ALLOWED for another one), and whether a user and a role are set."""
        options = context.get("seLinuxOptions")
        if options is None:
            return None
        type_ = str(options.get("type") or "")
        found = (_ALLOWED if type_ in types else type_, bool(options.get("user")), bool(options.get("role")))
        return found if found != (_ALLOWED, False, False) else None

    def check(_: Fields, spec: Fields) -> Violation | None:
        setters = _setters(
            problems(_context(spec)) is not None, _bad(spec, lambda context: problems(context) is not None)
        )
        if not setters:
            return None
        contexts = [_context(spec), *map(_context, _containers(spec))]
        every = [found for context in contexts if (found := problems(context)) is not None]
        bad_types = sorted({type_ for type_, _, _ in every} - {_ALLOWED})
        data = [f"{_plural('type', bad_types)} {_quoted(bad_types)}"] if bad_types else []
        data += ["user may not be set"] if any(user for _, user, _ in every) else []
        data += ["role may not be set"] if any(role for _, _, role in every) else []
        detail = f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
        return Violation("seLinuxOptions", detail)

    return check


def _sysctls(allowed: frozenset[str]) -> CheckPod:
    def check(_: Fields, spec: Fields) -> Violation | None:
        names = [str(sysctl.get("name")) for sysctl in _context(spec).get("sysctls") or ()]
        bad = [name for name in names if name not in allowed]
        return Violation("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def _host_process(_: Fields, spec: Fields) -> Violation | None:
    def is_bad(context: Fields) -> bool:
        return bool((context.get("windowsOptions") or {}).get("hostProcess"))

    setters = _setters(is_bad(_context(spec)), _bad(spec, is_bad))
    text = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", text) if setters else None


# -- restricted


def _privilege_escalation(_: Fields, spec: Fields) -> Violation | None:
    bad = _bad(spec, lambda context: context.get("allowPrivilegeEscalation") is not False)
    text = f"{_named(bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", text) if bad else None


def _drops_capabilities(_: Fields, spec: Fields) -> Violation | None:
    def added(context: Fields) -> set[str]:
        return set((context.get("capabilities") or {}).get("add") or ()) - {"NET_BIND_SERVICE"}

    bad = _bad(spec, lambda context: "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()))
    details = [f'{_named(bad)} must set securityContext.capabilities.drop=["ALL"]'] if bad else []
    return _forbidden_capabilities("unrestricted capabilities", spec, added, details)


def _restricted_volumes(_: Fields, spec: Fields) -> Violation | None:
    bad, types = [], set()
    for volume in spec.get("volumes") or ():
        sources = {name for name, source in volume.items() if name != "name" and source is not None}
        if not sources & _VOLUMES:
            bad.append(str(volume.get("name")))
            types.add(min(sources, default="unknown"))
    if not bad:
        return None
    listed = sorted(types)
    detail = f"{_named(bad, 'volume')} {_uses(bad)} {_plural('restricted volume type', listed)} {_quoted(listed)}"
    return Violation("restricted volume types", detail)


def _run_as_non_root(_: Fields, spec: Fields) -> Violation | None:
    pod = _context(spec).get("runAsNonRoot")
    if setters := _setters(pod is False, _bad(spec, lambda context: context.get("runAsNonRoot") is False)):
        return Violation("runAsNonRoot != true", f"{setters} must not set securityContext.runAsNonRoot=false")
    bad = [] if pod else _bad(spec, lambda context: context.get("runAsNonRoot") is None)
    text = f"pod or {_named(bad)} must set securityContext.runAsNonRoot=true"
    return Violation("runAsNonRoot != true", text) if bad else None


def _run_as_user(_: Fields, spec: Fields) -> Violation | None:
    def is_root(context: Fields) -> bool:
        user = context.get("runAsUser")
        return user is not None and user == 0

    setters = _setters(is_root(_context(spec)), _bad(spec, is_root))
    return Violation("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def _has_seccomp(metadata: Fields, spec: Fields) -> Violation | None:
    if (found := _seccomp(metadata, spec)) is not None:
        return found
    bad = [] if _seccomp_type(_context(spec)) else _bad(spec, lambda context: _seccomp_type(context) is None)
    text = f'pod or {_named(bad)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", text) if bad else None


def _unless(is_exempt: Callable[[Fields], bool], check: CheckPod) -> CheckPod:
    return lambda metadata, spec: None if is_exempt(spec) else check(metadata, spec)


def _is_windows(spec: Fields) -> bool:
    return bool((spec.get("os") or {}).get("name") == "windows")


def _has_user_namespace(spec: Fields) -> bool:
    return spec.get("hostUsers") is False


@dataclass(frozen=True, slots=True)
class Check:
    """One rule. `versions` has the first minor version of each variant; `replaces` names a check of baseline."""

    id: str
    level: Level
    versions: tuple[tuple[int, CheckPod], ...]
    replaces: str = ""

    def variant(self, minor: int | None) -> CheckPod | None:
        """Return the check of a version, None if it did not exist yet."""
        fitting = [check for since, check in self.versions if minor is None or since <= minor]
        return fitting[-1] if fitting else None


_B, _R = Level.BASELINE, Level.RESTRICTED
CHECKS: Final = (
    Check("appArmorProfile", _B, ((0, _app_armor),)),
    Check("capabilities_baseline", _B, ((0, _capabilities),)),
    Check("hostNamespaces", _B, ((0, _host_namespaces),)),
    Check("hostPathVolumes", _B, ((0, _host_paths),)),
    Check("hostPorts", _B, ((0, _host_ports),)),
    Check("hostProbesAndHostLifecycle", _B, ((34, _probe_hosts),)),
    Check("privileged", _B, ((0, _privileged),)),
    Check("procMount", _B, ((0, _proc_mount), (35, _unless(_has_user_namespace, _proc_mount)))),
    Check("seLinuxOptions", _B, ((0, _selinux(_SELINUX_TYPES)), (31, _selinux(_SELINUX_TYPES_31)))),
    Check("seccompProfile_baseline", _B, ((0, _seccomp_annotations), (19, _seccomp))),
    Check(
        "sysctls",
        _B,
        (
            (0, _sysctls(_SYSCTLS)),
            (27, _sysctls(_SYSCTLS_27)),
            (29, _sysctls(_SYSCTLS_29)),
            (32, _sysctls(_SYSCTLS_32)),
        ),
    ),
    Check("windowsHostProcess", _B, ((0, _host_process),)),
    Check(
        "allowPrivilegeEscalation",
        _R,
        ((8, _privilege_escalation), (25, _unless(_is_windows, _privilege_escalation))),
    ),
    Check(
        "capabilities_restricted",
        _R,
        ((22, _drops_capabilities), (25, _unless(_is_windows, _drops_capabilities))),
        replaces="capabilities_baseline",
    ),
    Check("procMount_restricted", _R, ((35, _proc_mount),), replaces="procMount"),
    Check("restrictedVolumes", _R, ((0, _restricted_volumes),), replaces="hostPathVolumes"),
    Check("runAsNonRoot", _R, ((0, _run_as_non_root), (35, _unless(_has_user_namespace, _run_as_non_root)))),
    Check("runAsUser", _R, ((23, _run_as_user), (35, _unless(_has_user_namespace, _run_as_user)))),
    Check(
        "seccompProfile_restricted",
        _R,
        ((19, _has_seccomp), (25, _unless(_is_windows, _has_seccomp))),
        replaces="seccompProfile_baseline",
    ),
)
"""In the order of Kubernetes' messages: those of baseline first, each level by name."""
