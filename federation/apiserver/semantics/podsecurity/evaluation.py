"""Evaluate pods and pod templates against a level of the Pod Security Standards. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from federation.apimachinery.ownerreferences import controller_uids
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.podsecurity.checks import CHECKS, CheckPod, Violation
from federation.apiserver.semantics.podsecurity.levels import Level, LevelVersion

_PODS_MAX = 3000
"""Existing pods that a stricter namespace is compared with."""


def evaluate(level: LevelVersion, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> list[Violation]:
    """Return the violations of a level by a valid pod or pod template."""
    return [found for check in _checks_of(level) if (found := check(metadata, spec)) is not None]


def details(violations: Iterable[Violation]) -> str:
    """Return violations in one line, with the parts of the pod."""
    return ", ".join(f"{each.reason} ({each.detail})" if each.detail else each.reason for each in violations)


def warnings_about(level: LevelVersion, namespace: str, pods: Sequence[Object]) -> list[str]:
    """Return the warnings about existing pods that a namespace would not admit any more, one per kind of violation."""
    found: dict[str, list[str]] = {}
    checked = _one_of_each_workload_first(pods)
    for pod in checked[:_PODS_MAX]:
        if violations := evaluate(level, pod["metadata"], pod.get("spec") or {}):
            reasons = ", ".join(each.reason for each in violations)
            found.setdefault(reasons, []).append(str(pod["metadata"]["name"]))
    warnings = []
    if len(checked) > _PODS_MAX:
        warnings.append(
            f"new PodSecurity enforce level only checked against the first {_PODS_MAX} of {len(checked)} existing pods"
        )
    if found:
        warnings.append(f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{level}"')
    return warnings + sorted(f"{min(names)}{_and_others(len(names) - 1)}: {text}" for text, names in found.items())


def _and_others(count: int) -> str:
    if not count:
        return ""
    return f" (and {count} other pod{'s' if count > 1 else ''})"


def _one_of_each_workload_first(pods: Sequence[Object]) -> list[Object]:
    first: list[Object] = []
    others: list[Object] = []
    seen: set[str] = set()
    for pod in pods:
        owners = controller_uids(pod)
        (others if owners and seen.issuperset(owners) else first).append(pod)
        seen.update(owners)
    return [*first, *others]


@lru_cache(maxsize=256)
def _checks_of(level: LevelVersion) -> tuple[CheckPod, ...]:
    if level.level is Level.PRIVILEGED:
        return ()
    wanted = {Level.BASELINE, level.level}
    active = {check.id: found for check in CHECKS if check.level in wanted and (found := check.variant(level.minor))}
    replaced = {check.replaces for check in CHECKS if check.id in active}
    return tuple(found for name, found in active.items() if name not in replaced)
