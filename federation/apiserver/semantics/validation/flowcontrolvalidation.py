"""Validate FlowSchemas and PriorityLevelConfigurations, with the fixed content of the mandatory ones.

`MANDATORY` holds the objects that kube-apiserver creates and restores; `registry/flowcontrolobjects.py` does so here.
The texts are those of kube-apiserver.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, duplicate, forbidden, invalid, not_supported, required
from federation.apimachinery.resources import Object

GROUP: Final = "flowcontrol.apiserver.k8s.io"
EXEMPT, CATCH_ALL = "exempt", "catch-all"
_PRECEDENCE_MAX: Final = 10_000
_QUEUES_MAX: Final = 10_000_000
_HASH_BITS_MAX: Final = 60
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_METHODS: Final = ("ByNamespace", "ByUser")
_SUBJECTS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_NAMESPACE_TEXT: Final = "each member of this list must be '*' or a DNS-1123 label; "
Fields = Mapping[str, Any]


def _rule_for_all(*groups: str) -> dict[str, Any]:
    return {
        "subjects": [{"kind": "Group", "group": {"name": name}} for name in groups],
        "resourceRules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
        ],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }


MANDATORY: Final[Mapping[str, Mapping[str, Object]]] = {
    "PriorityLevelConfiguration": {
        EXEMPT: {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
        CATCH_ALL: {
            "type": "Limited",
            "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}, "lendablePercent": 0},
        },
    },
    "FlowSchema": {
        EXEMPT: {
            "priorityLevelConfiguration": {"name": EXEMPT},
            "matchingPrecedence": 1,
            "rules": [_rule_for_all("system:masters")],
        },
        CATCH_ALL: {
            "priorityLevelConfiguration": {"name": CATCH_ALL},
            "matchingPrecedence": _PRECEDENCE_MAX,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [_rule_for_all("system:unauthenticated", "system:authenticated")],
        },
    },
}
"""The specs of the mandatory objects by kind and name, with defaults. Read-only."""


def validate_flow_schema(obj: Object) -> Causes:
    """Validate a FlowSchema with defaults."""
    name, spec = obj["metadata"].get("name", ""), obj.get("spec") or {}
    field, precedence = "spec.matchingPrecedence", spec.get("matchingPrecedence") or 0
    causes: Causes = []
    if precedence <= 0:
        causes.append(invalid(field, precedence, "must be a positive value"))
    if precedence > _PRECEDENCE_MAX:
        causes.append(invalid(field, precedence, f"must not be greater than {_PRECEDENCE_MAX}"))
    if precedence == 1 and name != EXEMPT:
        causes.append(invalid(field, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        causes.append(not_supported("spec.distinguisherMethod.type", method, _METHODS))
    field, level = "spec.priorityLevelConfiguration.name", (spec.get("priorityLevelConfiguration") or {}).get("name")
    if level:
        causes += [invalid(field, level, text) for text in nameformats.dns1123_subdomain(level)]
    else:
        causes.append(required(field, "must reference a priority level"))
    for index, rule in enumerate(spec.get("rules") or ()):
        causes += _validate_rule(rule, f"spec.rules[{index}]")
    fixed = MANDATORY["FlowSchema"].get(name)
    if fixed is not None and spec != fixed:
        causes.append(invalid("spec", spec, f"spec of '{name}' must equal the fixed value"))
    return causes + validate_conditions(obj)


def validate_priority_level(obj: Object) -> Causes:
    """Validate a PriorityLevelConfiguration with defaults."""
    name, spec = obj["metadata"].get("name", ""), obj.get("spec") or {}
    kind, limited, exempt = spec.get("type") or "", spec.get("limited"), spec.get("exempt")
    causes: Causes = []
    if (name == EXEMPT) is not (kind == "Exempt"):
        causes.append(invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    if kind == "Exempt":
        if limited is not None:
            causes.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        causes += _validate_shares(exempt or {}, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            causes.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            causes.append(required("spec.limited", "must not be empty when type is Limited"))
        else:
            causes += _validate_limited(limited, "spec.limited")
    else:
        causes.append(not_supported("spec.type", kind, ("Exempt", "Limited")) if kind else required("spec.type"))
    return causes + _validate_mandatory_level(name, spec) + validate_conditions(obj)


def validate_conditions(obj: Object) -> Causes:
    """Validate the conditions of a status: each has a type of its own."""
    causes: Causes = []
    seen: set[str] = set()
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        field, kind = f"status.conditions[{index}].type", condition.get("type") or ""
        if kind in seen:
            causes.append(duplicate(field, kind))
        if not kind:
            causes.append(required(field))
        seen.add(kind)
    return causes


def _validate_mandatory_level(name: str, spec: Object) -> Causes:
    fixed = MANDATORY["PriorityLevelConfiguration"].get(name)
    if fixed is None:
        return []
    if name == EXEMPT:
        # Administrators may change the shares of this level, and nothing else.
        if {key: value for key, value in spec.items() if key != "exempt"} == {"type": "Exempt"}:
            return []
        text = f"spec of '{name}' except the 'spec.exempt' field must equal the fixed value"
        return [invalid("spec", spec, text)]
    return [] if spec == fixed else [invalid("spec", spec, f"spec of '{name}' must equal the fixed value")]


def _validate_shares(level: Fields, field: str) -> Causes:
    causes: Causes = []
    shares, lendable = level.get("nominalConcurrencyShares"), level.get("lendablePercent")
    if shares is not None and shares < 0:
        causes.append(invalid(f"{field}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    if lendable is not None and not 0 <= lendable <= 100:
        causes.append(invalid(f"{field}.lendablePercent", lendable, "must be between 0 and 100, inclusive"))
    return causes


def _validate_limited(level: Fields, field: str) -> Causes:
    causes = _validate_shares(level, field)
    borrowing = level.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        text = "if specified, must be a non-negative integer"
        causes.append(invalid(f"{field}.borrowingLimitPercent", borrowing, text))
    response, at = level.get("limitResponse") or {}, f"{field}.limitResponse"
    kind, queuing = response.get("type") or "", response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            text = "must be nil if limited.limitResponse.type is not Limited"
            causes.append(forbidden(f"{at}.queuing", text))
    elif kind == "Queue":
        if queuing is None:
            text = "must not be empty if limited.limitResponse.type is Limited"
            causes.append(required(f"{at}.queuing", text))
        else:
            causes += _validate_queuing(queuing, f"{at}.queuing")
    else:
        causes.append(not_supported(f"{at}.type", kind, ("Queue", "Reject")) if kind else required(f"{at}.type"))
    return causes


def _validate_queuing(queuing: Fields, field: str) -> Causes:
    length, queues, hand = (queuing.get(name) or 0 for name in ("queueLengthLimit", "queues", "handSize"))
    causes: Causes = []
    if length <= 0:
        causes.append(invalid(f"{field}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        causes.append(invalid(f"{field}.queues", queues, "must be positive"))
    elif queues > _QUEUES_MAX:
        causes.append(invalid(f"{field}.queues", queues, f"must not be greater than {_QUEUES_MAX}"))
    if hand <= 0:
        causes.append(invalid(f"{field}.handSize", hand, "must be positive"))
    elif hand > queues:
        causes.append(invalid(f"{field}.handSize", hand, f"should not be greater than queues ({queues})"))
    elif math.ceil(math.log2(queues) * hand) > _HASH_BITS_MAX:
        text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than"
        causes.append(invalid(f"{field}.handSize", hand, f"{text} {_HASH_BITS_MAX}"))
    return causes


def _validate_rule(rule: Fields, field: str) -> Causes:
    causes: Causes = []
    subjects = rule.get("subjects") or []
    if not subjects:
        causes.append(required(f"{field}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(subjects):
        causes += _validate_subject(subject, f"{field}.subjects[{index}]")
    resources, others = rule.get("resourceRules") or [], rule.get("nonResourceRules") or []
    if not resources and not others:
        causes.append(required(field, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for index, entry in enumerate(resources):
        causes += _validate_resource_rule(entry, f"{field}.resourceRules[{index}]")
    for index, entry in enumerate(others):
        causes += _validate_path_rule(entry, f"{field}.nonResourceRules[{index}]")
    return causes


def _validate_subject(subject: Fields, field: str) -> Causes:
    kind = subject.get("kind") or ""
    own = _SUBJECTS.get(kind)
    if own is None:
        return [not_supported(f"{field}.kind", kind, _SUBJECTS)]
    found = subject.get(own)
    causes: Causes = []
    if found is None:
        causes.append(required(f"{field}.{own}", f"{own} is required when subject kind is '{kind}'"))
    else:
        causes += _validate_subject_names(found, kind, f"{field}.{own}")
    return causes + [
        forbidden(f"{field}.{name}", f"{name} is forbidden when subject kind is not '{other}'")
        for other, name in _SUBJECTS.items()
        if other != kind and subject.get(name) is not None
    ]


def _validate_subject_names(subject: Fields, kind: str, field: str) -> Causes:
    name, namespace = subject.get("name") or "", subject.get("namespace") or ""
    causes: Causes = [] if name else [required(f"{field}.name")]
    if kind != "ServiceAccount":
        return causes
    if name and name != "*":
        causes += [invalid(f"{field}.name", name, text) for text in nameformats.dns1123_subdomain(name)]
    if not namespace:
        return [*causes, required(f"{field}.namespace", "must specify namespace for service account")]
    return causes + [invalid(f"{field}.namespace", namespace, text) for text in nameformats.dns1123_label(namespace)]


def _validate_resource_rule(rule: Fields, field: str) -> Causes:
    causes = _validate_verbs(rule, field)
    for name, noun in (("apiGroups", "api group"), ("resources", "resource")):
        listed = rule.get(name) or []
        if not listed:
            causes.append(required(f"{field}.{name}", f"resource rules must supply at least one {noun}"))
        elif len(listed) > 1 and "*" in listed:
            causes.append(invalid(f"{field}.{name}", listed, f"if '*' is present, must not specify other {noun}s"))
    namespaces = rule.get("namespaces") or []
    if not namespaces and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        causes.append(required(f"{field}.namespaces", text))
    elif "*" in namespaces:
        if len(namespaces) > 1:
            text = "if '*' is present, must not specify other namespaces"
            causes.append(invalid(f"{field}.namespaces", namespaces, text))
    else:
        for index, namespace in enumerate(namespaces):
            problems = nameformats.dns1123_label(namespace)
            causes += [
                invalid(f"{field}.namespaces[{index}]", namespace, _NAMESPACE_TEXT + problem) for problem in problems
            ]
    return causes


def _validate_path_rule(rule: Fields, field: str) -> Causes:
    causes = _validate_verbs(rule, field)
    paths, at = rule.get("nonResourceURLs") or [], f"{field}.nonResourceURLs"
    if not paths:
        causes.append(required(at, "nonResourceURLs must contain at least one value"))
    elif "*" in paths:
        if len(paths) > 1:
            causes.append(invalid(at, paths, "if '*' is present, must not specify other non-resource URLs"))
    else:
        for index, path in enumerate(paths):
            if problem := _path_problem(path):
                causes.append(invalid(f"{at}[{index}]", path, problem))
    return causes


def _validate_verbs(rule: Fields, field: str) -> Causes:
    verbs = rule.get("verbs") or []
    if not verbs:
        return [required(f"{field}.verbs", "verbs must contain at least one value")]
    if "*" in verbs:
        text = "if '*' is present, must not specify other verbs"
        return [invalid(f"{field}.verbs", verbs, text)] if len(verbs) > 1 else []
    return [] if _are_known(verbs) else [not_supported(f"{field}.verbs", verbs, _VERBS)]


def _are_known(verbs: Iterable[str]) -> bool:
    return all(verb in _VERBS for verb in verbs)


def _path_problem(path: str) -> str:
    """Return the problem of a path, which may end in `/*`, "" if it has none."""
    if not path:
        return "must not be empty"
    if path == "/":
        return ""
    if not path.startswith("/"):
        return "must start with slash"
    if " " in path:
        return "must not contain white-space"
    if "//" in path:
        return "must not contain double slash"
    stars = path.count("*")
    if stars > 1 or (stars == 1 and not path.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""
