"""Admission of FederatedTypeConfigs: one that cannot work is refused, not ignored.

A pipeline stage without a controller holds every object of the kind for ever, a wrong plural or scope makes requests to
members fail, and a second configuration of a kind has no effect. `features/types` handles deletions.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from federation.admission.federatedobjects import FindResource
from federation.admission.retentionrules import compile_retention
from federation.admission.rolloutgates import compile_gate
from federation.admission.statusrules import compile_status_rule
from federation.api import names
from federation.api.components import parse_components, to_path
from federation.api.federatedtype import from_config
from federation.api.resources import FEDERATED_TYPE_CONFIGS, WORKLOAD_SPREADS
from federation.apimachinery import dotpaths
from federation.apimachinery.errors import cause, invalid
from federation.apimachinery.quantity import parse
from federation.apimachinery.resources import GroupKind, Object
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.planning.aggregation.aggregators import has_own_merge
from federation.planning.aggregation.rules import RuleError

_STAGES = (names.GLOBAL_SCHEDULER, names.OVERRIDE_CONTROLLER, names.NSAUTOPROP_CONTROLLER)
"""The controllers that advance the pipeline of any object."""
_NEVER_RETAINED = ("apiVersion", "kind", "metadata", "status")
_SOURCE_TYPE = "spec.sourceType"
_RULES = "spec.statusAggregation.rules"
_CONDITIONS = ("status", "conditions")
_OBSERVED_GENERATION = ("status", "observedGeneration")


class TypeConfigAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server; `list_configs` reads the stored configurations."""

    resources = frozenset({FEDERATED_TYPE_CONFIGS.group_resource})

    def __init__(self, find: FindResource, list_configs: Callable[[], Awaitable[Sequence[Object]]]) -> None:
        self._find = find
        self._list_configs = list_configs

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:  # noqa: ARG002  # a plugin's signature
        """Raise Invalid for a configuration that cannot work, naming the field and the remedy."""
        config = request.obj or {}
        if not request.changes_spec:
            return  # metadata only, such as the removal of a finalizer from one that was stored earlier
        causes = [*self._stage_causes(config), *_component_causes(config), *_health_causes(config)]
        causes += _retention_causes(config)
        causes += [*self._source_causes(config, request.old), *_rule_causes(config)] if not causes else []
        if not causes:
            causes += await self._duplicate_causes(config)
        if causes:
            raise invalid(FEDERATED_TYPE_CONFIGS.kind, FEDERATED_TYPE_CONFIGS.group, request.name, causes)

    def _stage_causes(self, config: Object) -> list[Object]:
        found = []
        seen: set[str] = set()
        stages = _stages_of((config.get("spec") or {}).get("sourceType") or {})
        for index, stage in enumerate((config.get("spec") or {}).get("controllers") or ()):
            for position, name in enumerate(stage or ()):
                field = f"spec.controllers[{index}][{position}]"
                if name not in stages:
                    known = ", ".join(f'"{stage}"' for stage in stages)
                    text = f'Unsupported value: "{name}": no controller would ever pass it; supported values: {known}'
                    found.append(cause("FieldValueNotSupported", text, field))
                elif name in seen:
                    found.append(cause("FieldValueDuplicate", f'Duplicate value: "{name}"', field))
                seen.add(name)
        return found

    def _source_causes(self, config: Object, old: Object | None) -> list[Object]:
        source = (config.get("spec") or {}).get("sourceType") or {}
        try:
            type_ = from_config(config)
        except (ValueError, KeyError, TypeError) as error:
            return [cause("FieldValueInvalid", str(error), _SOURCE_TYPE)]
        before = ((old or {}).get("spec") or {}).get("sourceType") or {}
        if old is not None and {**before, "version": source.get("version")} != source:
            text = (
                "Invalid value: only version may change; delete the configuration and create another one for other"
                " fields"
            )
            return [cause("FieldValueInvalid", text, _SOURCE_TYPE)]
        if source.get("scope") not in ("Namespaced", "Cluster"):
            text = f'Unsupported value: "{source.get("scope")}": supported values: "Namespaced", "Cluster"'
            return [cause("FieldValueNotSupported", text, f"{_SOURCE_TYPE}.scope")]
        served = self._find(type_.resource.api_version, type_.resource.kind)
        if served is None and before:
            text = f"Invalid value: the host does not serve {type_.resource.kind} in {type_.resource.api_version}"
            return [cause("FieldValueInvalid", text, f"{_SOURCE_TYPE}.version")] if before != source else []
        if served is None:
            return []  # a CustomResourceDefinition may follow
        found = []
        if served.plural != type_.resource.plural:
            text = f'Invalid value: "{type_.resource.plural}": the host serves {served.kind} as "{served.plural}"'
            found.append(cause("FieldValueInvalid", text, f"{_SOURCE_TYPE}.pluralName"))
        if served.namespaced is not type_.resource.namespaced:
            scope = "Namespaced" if served.namespaced else "Cluster"
            text = f'Invalid value: "{source["scope"]}": {served.kind} has the scope "{scope}"'
            found.append(cause("FieldValueInvalid", text, f"{_SOURCE_TYPE}.scope"))
        return found

    async def _duplicate_causes(self, config: Object) -> list[Object]:
        name, key = config["metadata"].get("name"), _key(config)
        for other in await self._list_configs():
            if other["metadata"]["name"] != name and _key(other) == key:
                name = other["metadata"]["name"]
                text = f'Duplicate value: {key.kind} is federated by "{name}" already; change that one'
                return [cause("FieldValueDuplicate", text, _SOURCE_TYPE)]
        return []


def _health_causes(config: Object) -> list[Object]:
    """Return the errors of the health expression."""
    expression = ((config.get("spec") or {}).get("health") or {}).get("expression")
    if expression is None:
        return []
    try:
        compile_gate(str(expression))
    except RuleError as error:
        return [cause("FieldValueInvalid", f'Invalid value: "{expression}": {error}', "spec.health.expression")]
    return []


def _retention_causes(config: Object) -> list[Object]:
    """Return the errors of the retention rules."""
    found = []
    for index, rule in enumerate((config.get("spec") or {}).get("retention") or ()):
        field, keys = f"spec.retention[{index}]", to_path(str(rule["path"]))
        if not keys or keys[0].removesuffix("[]") in _NEVER_RETAINED or keys[-1].endswith("[]"):
            text = f'Invalid value: "{rule["path"]}": name a field below spec, data or another part of the template'
            found.append(cause("FieldValueInvalid", text, f"{field}.path"))
        if (expression := rule.get("expression")) is None:
            continue
        try:
            compile_retention(str(expression))
        except RuleError as error:
            found.append(cause("FieldValueInvalid", f'Invalid value: "{expression}": {error}', f"{field}.expression"))
    return found


def _component_causes(config: Object) -> list[Object]:
    """Return the errors of the components: each must say what its pods need, and amounts must be quantities."""
    spec = config.get("spec") or {}
    found = []
    try:
        parse_components(spec.get("components") or (), spec.get("gang"))
    except ValueError as error:
        field, _, text = str(error).partition(": ")
        found.append(cause("FieldValueRequired", text, field))
    for index, component in enumerate(spec.get("components") or ()):
        for position, entry in enumerate(component.get("requests") or ()):
            field = f"spec.components[{index}].requests[{position}]"
            if bool(entry.get("resource")) is bool(entry.get("resourcePath")):
                text = "Invalid value: give one of resource and resourcePath"
                found.append(cause("FieldValueInvalid", text, field))
            amounts = {"overhead.atLeast": (entry.get("overhead") or {}).get("atLeast")}
            if entry.get("format") != "Java":
                amounts["default"] = entry.get("default")
            for name, amount in amounts.items():
                if amount and not _is_quantity(amount):
                    text = f'Invalid value: "{amount}": write a quantity, such as 500m or 1Gi'
                    found.append(cause("FieldValueInvalid", text, f"{field}.{name}"))
    return found


def _is_quantity(text: str) -> bool:
    """Return whether the text is a quantity."""
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _rule_causes(config: Object) -> list[Object]:
    """Return the errors of the status rules: each has a field of its own and an expression that compiles."""
    spec = config.get("spec") or {}
    rules = (spec.get("statusAggregation") or {}).get("rules") or []
    source = spec.get("sourceType") or {}
    if rules and has_own_merge(str(source.get("group") or ""), str(source.get("kind"))):
        text = f"Forbidden: the status of {source.get('kind')} has a merge of its own; remove the rules"
        return [cause("FieldValueForbidden", text, _RULES)]
    found = []
    paths: list[dotpaths.Path] = []
    for index, rule in enumerate(rules):
        path = dotpaths.split(rule["path"])
        if path == _OBSERVED_GENERATION:
            text = f'Forbidden: "{rule["path"]}" says which generation all members have observed; choose another field'
            found.append(cause("FieldValueForbidden", text, f"{_RULES}[{index}].path"))
        elif any(path[: len(other)] == other[: len(path)] for other in paths):
            text = f'Duplicate value: "{rule["path"]}": an earlier rule computes this field, its parent or a part of it'
            found.append(cause("FieldValueDuplicate", text, f"{_RULES}[{index}].path"))
        paths.append(path)
        try:
            compile_status_rule(rule["expression"], "LIST" if path == _CONDITIONS else "")
        except RuleError as error:
            text = f'Invalid value: "{rule["expression"]}": {error}'
            found.append(cause("FieldValueInvalid", text, f"{_RULES}[{index}].expression"))
    return found


def _key(config: Mapping[str, Any]) -> GroupKind:
    source = (config.get("spec") or {}).get("sourceType") or {}
    return GroupKind(str(source.get("group") or ""), str(source.get("kind") or ""))


def _stages_of(source: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the controllers that advance the pipeline of objects of a source type."""
    is_spread = (source.get("group"), source.get("kind")) == (WORKLOAD_SPREADS.group, WORKLOAD_SPREADS.kind)
    return (*_STAGES, names.SPREAD_CONTROLLER) if is_spread else _STAGES
