"""The rules of a CustomResourceDefinition when it is written: do they compile, and may they use `oldSelf`? Pure.

A rule that compares with the old value needs to find it, so it may not stand below a list whose items cannot be told
apart. What a rule must say beside its expression is `schema/keywords.py`'s; `rules.py` runs what passed here.
"""

from collections.abc import Mapping
from typing import Any

from federation.registry.cel.programs import CompileError
from federation.registry.cel.rules import compile_rule
from federation.registry.validation.fields import Causes, invalid

_KEY = "x-kubernetes-validations"


def rule_problems(raw: Any, path: str, uncorrelated: str = "") -> Causes:
    """Return what is wrong with the rules anywhere in an openAPIV3Schema at `path` of its definition.

    `uncorrelated` is the path of the outermost list above whose items have no identity, "" when there is none.
    """
    if not isinstance(raw, Mapping):
        return []
    causes: Causes = []
    for index, rule in enumerate(raw.get(_KEY) or ()):
        causes += _problems(rule, f"{path}.{_KEY}[{index}]", uncorrelated)
    for name, child in (raw.get("properties") or {}).items():
        causes += rule_problems(child, f"{path}.properties[{name}]", uncorrelated)
    causes += rule_problems(raw.get("additionalProperties"), f"{path}.additionalProperties", uncorrelated)
    if not uncorrelated and raw.get("x-kubernetes-list-type") != "map":
        uncorrelated = path
    return causes + rule_problems(raw.get("items"), f"{path}.items", uncorrelated)


def _problems(raw: Mapping[str, Any], path: str, uncorrelated: str) -> Causes:
    try:
        rule = compile_rule({**raw, "messageExpression": ""})
    except CompileError as error:
        return [invalid(f"{path}.rule", dict(raw), str(error))]
    causes: Causes = []
    try:
        compile_rule(raw)
    except CompileError as error:
        causes.append(invalid(f"{path}.messageExpression", dict(raw), f"messageExpression {error}"))
    if rule.is_transition and uncorrelated:
        text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
        causes.append(invalid(f"{path}.rule", raw["rule"], text))
    elif not rule.is_transition and raw.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        causes.append(invalid(f"{path}.optionalOldSelf", raw["optionalOldSelf"], text))
    return causes
