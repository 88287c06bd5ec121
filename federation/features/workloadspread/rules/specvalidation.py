"""Validate WorkloadSpreads: creation, update, and conflicts with others. Pure.

Kubernetes' rules for selectors, node terms, tolerations and pods belong to the API server, so the caller passes them as
`SpreadRules`. Results are causes with v1beta1 field paths; an empty list means that the object is valid.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from federation.apimachinery.fielderrors import Causes, duplicate, forbidden, invalid, not_supported, required
from federation.apimachinery.resources import Object
from federation.features.workloadspread.rules.injection import is_deselected
from federation.features.workloadspread.rules.references import (
    EMPTY_WHITELIST,
    GROUPS_BY_KIND,
    Whitelist,
    group_of,
    is_same_workload,
    object_name,
)
from federation.features.workloadspread.rules.subsets import (
    ADAPTIVE,
    is_stateful,
    name_of,
    parse_percentage,
    strategy_of,
    subsets_of,
    target_of,
)
from federation.features.workloadspread.rules.totals import filter_of
from federation.planning.corerules import CoreRules, Rule

Fields = Mapping[str, Any]

STRATEGIES = ("", "Fixed", ADAPTIVE)
CRITICAL_S_MAX = 295
"""A pod must be able to try all subsets before the first one is schedulable again, after 300 seconds."""
SUBSETS_MAX = 128
"""Subsets of one WorkloadSpread; the simulation of one pod looks at the nodes of each."""
SPEC_BYTES_MAX = 128 * 1024
"""Size of a spec as JSON. Every new pod is merged with a patch of it; at a size of 1 MiB that takes seconds."""
PATCH_LEVELS_MAX = 64
"""Nesting depth of a patch. Pods stay below 20; the JSON encoder stops at 254."""
_TARGET = "spec.targetRef"
_SUBSETS = "spec.subsets"
_STRATEGY = "spec.scheduleStrategy"
_HAVE_CLAIMS = frozenset({"CloneSet", "StatefulSet"})


@dataclass(frozen=True, slots=True)
class SpreadRules(CoreRules):
    """Kubernetes' rules for parts of a WorkloadSpread."""

    preferred_term: Rule
    patched_pod: Callable[[Object, Object, Sequence[str], str], Causes]
    """Takes a pod template, a patch, names of volumes that the workload adds, and a field."""
    lone_patch: Rule
    """Finds what is wrong with a patch for every workload."""


def validate_spread(
    spread: Object,
    rules: SpreadRules,
    *,
    others: Iterable[Fields] = (),
    workload: Object | None = None,
    whitelist: Whitelist = EMPTY_WHITELIST,
) -> Causes:
    """Validate a WorkloadSpread.

    `others` are those of its namespace, itself included or not. `workload` is its target, None if there is none yet.
    """
    field, text = exceeded_limit(spread)
    if text:
        return [forbidden(field, text)]
    causes = _validate_target(spread, whitelist)
    causes += _validate_subsets(spread, rules, workload)
    causes += _validate_limits(spread)
    causes += _validate_strategy(spread)
    if (selector := filter_of(spread).get("selector")) is not None:
        causes += rules.label_selector(selector, "spec.targetFilter.selector")
    return causes + validate_conflict(spread, others)


def exceeded_limit(spread: Fields) -> tuple[str, str]:
    """Return the field of a WorkloadSpread that is too large to be used, and why; two empty texts if none is."""
    subsets = subsets_of(spread)
    if len(subsets) > SUBSETS_MAX:
        return _SUBSETS, f"must have at most {SUBSETS_MAX} subsets"
    try:
        text = orjson.dumps(spread.get("spec"))
    except orjson.JSONEncodeError:
        text = b""
    if len(text) > SPEC_BYTES_MAX:
        return "spec", f"must have at most {SPEC_BYTES_MAX} bytes as JSON, has {len(text)}"
    if text and text.count(b"{") + text.count(b"[") <= PATCH_LEVELS_MAX:
        return "", ""
    for index, subset in enumerate(subsets):
        if _is_deeper(subset.get("patch"), PATCH_LEVELS_MAX):
            return f"{_SUBSETS}[{index}].patch", f"must have at most {PATCH_LEVELS_MAX} levels"
    return ("", "") if text else ("spec", "is nested too deeply")


def _is_deeper(value: Any, levels_max: int) -> bool:
    """Return True if a value has more nested mappings and lists than `levels_max`."""
    level = [value]
    for _ in range(levels_max):
        level = [child for each in level for child in _children(each) if isinstance(child, dict | list)]
    return bool(level)


def _children(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def validate_update(new: Fields, old: Fields) -> Causes:
    """Validate a change; the new object must also be valid by itself. Only the version of the target may change."""
    before = target_of(old)
    if is_same_workload(before, target_of(new)):
        return []
    return [invalid(_TARGET, dict(target_of(new)), "group, kind and name are immutable")]


def validate_conflict(spread: Fields, others: Iterable[Fields]) -> Causes:
    """Check that no other WorkloadSpread of the namespace has the same target."""
    target, name = target_of(spread), object_name(spread)
    return [
        invalid(_TARGET, dict(target), f"WorkloadSpread {object_name(other)} has the same target")
        for other in others
        if target and object_name(other) != name and is_same_workload(target_of(other), target)
    ]


def patch_warnings(spread: Fields, unknown_fields: Callable[[Object], Sequence[str]]) -> list[str]:
    """Return a warning for each field of a patch that pods do not have: admission ignores it.

    `unknown_fields` returns the paths of such fields of a patch.
    """
    return [
        f'unknown field "{_SUBSETS}[{index}].patch.{path}"'
        for index, subset in enumerate(subsets_of(spread))
        for path in unknown_fields(subset.get("patch") or {})
    ]


def _validate_target(spread: Fields, whitelist: Whitelist) -> Causes:
    target = target_of(spread)
    if not target:
        return [required(_TARGET)]
    if not all(target.get(field) for field in ("apiVersion", "kind", "name")):
        return [invalid(_TARGET, dict(target), "apiVersion, kind and name must not be empty")]
    group, kind = group_of(target), str(target["kind"])
    groups = GROUPS_BY_KIND.get(kind)
    if group in groups if groups is not None else whitelist.has_workload(group, kind):
        return []
    return [invalid(_TARGET, dict(target), f"kind {kind} of group {group!r} is not supported")]


def _validate_subsets(spread: Fields, rules: SpreadRules, workload: Object | None) -> Causes:
    subsets = subsets_of(spread)
    causes: Causes = [] if subsets else [required(_SUBSETS, "at least one subset")]
    names: set[str] = set()
    for index, subset in enumerate(subsets):
        at, name = f"{_SUBSETS}[{index}]", name_of(subset)
        if not name:
            causes.append(required(f"{at}.name"))
        elif name in names:
            causes.append(duplicate(f"{at}.name", name))
        names.add(name)
        causes += _validate_nodes(subset, rules, at)
        causes += _validate_patch(spread, subset, rules, workload, f"{at}.patch")
    return causes


def validate_patches(spread: Fields, rules: SpreadRules, workload: Object | None) -> Causes:
    """Check the patches alone: a workload may be created or changed after its WorkloadSpread was admitted."""
    causes: Causes = []
    for index, subset in enumerate(subsets_of(spread)):
        causes += _validate_patch(spread, subset, rules, workload, f"{_SUBSETS}[{index}].patch")
    return causes


def _validate_nodes(subset: Fields, rules: SpreadRules, at: str) -> Causes:
    causes: Causes = []
    if (term := subset.get("requiredNodeSelector")) is not None:
        causes += rules.required_term(term, f"{at}.requiredNodeSelector")
    for index, preferred in enumerate(subset.get("preferredNodeSelector") or ()):
        field, weight = f"{at}.preferredNodeSelector[{index}]", preferred.get("weight") or 0
        if not 1 <= weight <= 100:
            causes.append(invalid(f"{field}.weight", weight, "must be in the range 1-100"))
        causes += rules.preferred_term(preferred.get("preference") or {}, f"{field}.preference")
    for index, toleration in enumerate(subset.get("tolerations") or ()):
        causes += rules.toleration(toleration, f"{at}.tolerations[{index}]")
    return causes


def _validate_patch(spread: Fields, subset: Fields, rules: SpreadRules, workload: Object | None, at: str) -> Causes:
    """Check that the pods of the workload are valid with the patch.

    Without a workload, and for other kinds, whose template is unknown, only the patch itself is checked.
    """
    patch = subset.get("patch")
    if not patch:
        return []
    kind = str((workload or {}).get("kind") or target_of(spread).get("kind"))
    spec = (workload or {}).get("spec") or {}
    template = spec.get("template")
    if kind not in GROUPS_BY_KIND or not isinstance(template, dict):
        return rules.lone_patch(patch, at)
    claims = spec.get("volumeClaimTemplates") or () if kind in _HAVE_CLAIMS else ()
    causes = rules.patched_pod(template, patch, [object_name(claim) for claim in claims], at)
    labels = (template.get("metadata") or {}).get("labels") or {}
    added = (patch.get("metadata") or {}).get("labels") or {}
    after = {key: value for key, value in {**labels, **added}.items() if value is not None}
    if not causes and is_deselected(workload, labels, after):
        causes.append(invalid(f"{at}.metadata.labels", added, f"the selector of the {kind} does not match such pods"))
    return causes


def _validate_limits(spread: Fields) -> Causes:
    subsets = subsets_of(spread)
    causes: Causes = []
    is_first_text: bool | None = None
    total = 0
    for index, subset in enumerate(subsets):
        limit = subset.get("maxReplicas")
        if limit is None:
            continue
        at = f"{_SUBSETS}[{index}].maxReplicas"
        is_text, percentage = isinstance(limit, str), parse_percentage(limit)
        number = percentage if is_text else limit
        is_first_text = is_text if is_first_text is None else is_first_text
        if not isinstance(number, int) or isinstance(number, bool):
            causes.append(invalid(at, limit, "must be an integer or an integer percentage such as 20%"))
        elif number < 0:
            causes.append(invalid(at, limit, "must be greater than or equal to 0"))
        elif is_text and is_stateful(spread):
            causes.append(invalid(at, limit, "must be an integer, because the target is a StatefulSet"))
        elif is_text is not is_first_text:
            causes.append(invalid(at, limit, "all limits must be integers, or all must be percentages"))
        total += max(0, percentage or 0)
        if total > 100:
            causes.append(invalid(at, limit, "the sum of all percentages must not exceed 100%"))
    if not causes and is_first_text and subsets[-1].get("maxReplicas") is not None and total != 100:
        first = subsets[0].get("maxReplicas")
        text = "the sum of all percentages must be 100%, because the last subset has a limit"
        causes.append(invalid(f"{_SUBSETS}[0].maxReplicas", first, text))
    return causes


def _validate_strategy(spread: Fields) -> Causes:
    strategy, subsets = strategy_of(spread), subsets_of(spread)
    type_, adaptive = strategy.get("type") or "", strategy.get("adaptive")
    causes: Causes = []
    if type_ not in STRATEGIES:
        causes.append(not_supported(f"{_STRATEGY}.type", type_, STRATEGIES[1:]))
    if adaptive is None:
        return causes
    if type_ in STRATEGIES and type_ != ADAPTIVE:
        causes.append(invalid(f"{_STRATEGY}.type", type_, "must be Adaptive, because adaptive is set"))
    if len(subsets) > 1 and subsets[-1].get("maxReplicas") is not None:
        text = "the last subset must have no maxReplicas, because the strategy is Adaptive"
        causes.append(invalid(f"{_STRATEGY}.adaptive", dict(adaptive), text))
    return causes + _validate_seconds(adaptive.get("rescheduleCriticalSeconds"), len(subsets))


def _validate_seconds(seconds: int | None, subsets: int) -> Causes:
    at = f"{_STRATEGY}.adaptive.rescheduleCriticalSeconds"
    if seconds is None:
        return []
    if seconds < 0:
        return [invalid(at, seconds, "must be greater than or equal to 0")]
    if subsets > 1 and seconds > CRITICAL_S_MAX // (subsets - 1):
        text = f"must be at most {CRITICAL_S_MAX // (subsets - 1)} for {subsets} subsets"
        return [invalid(at, seconds, text)]
    return []
