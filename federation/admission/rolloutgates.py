"""The CEL engine for the gates of rollouts (`spec.rollout.waves[].gate.expression` of policies).

`features/waves` uses `compile_gate`, and the admission of policies compiles with it, so an
expression that is accepted is one that runs. A gate is evaluated for each cluster on the control loop, so its limit is
that of expressions of namespaces' users (`apiserver/semantics/cel/budget.py`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from federation.admission.celrules import OBJECT_FIELDS, compile_rule
from federation.apimachinery.errors import cause
from federation.apimachinery.publicaddresses import Network
from federation.apimachinery.resources import Object
from federation.apimachinery.webhookclient import is_public_host
from federation.apiserver.semantics.cel.budget import TENANT_LIMIT
from federation.apiserver.semantics.cel.composition import Environment
from federation.planning.aggregation.rules import RuleError
from federation.planning.waves.metricsources import LABEL_NAME, Sources
from federation.planning.waves.rolloutpart import has_waves, kinds_with_waves

_FIELDS: Final = {"object": OBJECT_FIELDS}
_COMPILED_MAX: Final = 256
_NOT_ALLOWED: Final = (
    "not a global unicast address; the administrator may allow its network with FEDERATION_GATE_ALLOWED_NETWORKS"
)


@lru_cache(_COMPILED_MAX)
def compile_gate(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function from a member object to whether the gate holds; both raise RuleError."""
    run, type_ = compile_rule(Environment(("object:MAP",), _FIELDS, limit=TENANT_LIMIT, is_new=True), text)
    if type_ not in ("BOOL", "DYN"):
        raise RuleError(f"must evaluate to bool but got {type_.lower()}")

    def holds(obj: Mapping[str, Any]) -> bool:
        result = run({"object": obj})
        if not isinstance(result, bool):
            raise RuleError("must evaluate to bool")
        return result

    return holds


def kind_causes(spec: Mapping[str, Any]) -> list[Object]:
    """Return a field error if a policy has waves but selects only kinds that waves do not apply to."""
    selectors = spec.get("resourceSelectors") or ()
    if not spec.get("rollout") or not selectors or any(map(has_waves, selectors)):
        return []
    kinds = ", ".join(dict.fromkeys(str(each.get("kind")) for each in selectors))
    text = f"Invalid value: waves are for {kinds_with_waves()}; the policy selects only {kinds}; remove the field"
    return [cause("FieldValueInvalid", text, "spec.rollout")]


def gate_causes(rollout: Mapping[str, Any], networks: Sequence[Network] = ()) -> list[Object]:
    """Return the field errors of the gates of a `spec.rollout` that its schema has accepted.

    `networks` are those that gates may reach beside global unicast addresses.
    """
    found: list[Object] = []
    for index, wave in enumerate(rollout.get("waves") or ()):
        gate, field = wave.get("gate") or {}, f"spec.rollout.waves[{index}].gate"
        if text := gate.get("expression"):
            try:
                compile_gate(text)
            except RuleError as error:
                found.append(cause("FieldValueInvalid", f"Invalid value: {error}", f"{field}.expression"))
        url = (gate.get("http") or {}).get("url")
        if url and not is_public_host(url, networks):
            text = f"Invalid value: {_NOT_ALLOWED}"
            found.append(cause("FieldValueInvalid", text, f"{field}.http.url"))
    return found


def objective_causes(
    rollout: Mapping[str, Any], sources: Sources, namespace: str, path: str = "spec.rollout"
) -> list[Object]:
    """Return the field errors of objectives whose source or template the administrator does not list.

    `namespace` is that of the policy, "" for one of all namespaces; `path` that of the waves.
    """
    found: list[Object] = []
    for index, wave in enumerate(rollout.get("waves") or ()):
        for place, objective in enumerate((wave.get("gate") or {}).get("objectives") or ()):
            field = f"{path}.waves[{index}].gate.objectives[{place}]"
            name, template = objective.get("source") or "", objective.get("template") or ""
            source = sources.get(name)
            if source is None or (namespace and not source.serves(namespace)):
                known = [each for each in sorted(sources) if not namespace or sources[each].serves(namespace)]
                choice = f"choose one of {', '.join(known)}" if known else "none is listed"
                text = f"Not found: {name!r} is no source of metrics for this namespace: {choice}"
                found.append(cause("FieldValueNotFound", text, f"{field}.source"))
            elif template and template not in source.templates:
                choice = f"choose one of {', '.join(sorted(source.templates))}" if source.templates else "it has none"
                text = f"Not found: {template!r} is no template of source {name}: {choice}"
                found.append(cause("FieldValueNotFound", text, f"{field}.template"))
            found += _pattern_causes(objective, field)
    return found


def _pattern_causes(objective: Mapping[str, Any], field: str) -> list[Object]:
    found = []
    for part, key in (("errors", "labels"), ("errors", "bad"), ("latency", "labels")):
        for label, pattern in ((objective.get(part) or {}).get(key) or {}).items():
            text = ""
            if not LABEL_NAME.fullmatch(label) or label.startswith("__"):
                text = "must be a label's name of letters, digits and underscores"
            try:
                re.compile(pattern)
            except re.error as error:
                text = f"{pattern!r} is no regular expression: {error}"
            if text:
                found.append(cause("FieldValueInvalid", f"Invalid value: {text}", f"{field}.{part}.{key}[{label}]"))
    return found
