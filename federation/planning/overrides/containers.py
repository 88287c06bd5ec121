"""Override commands, arguments and environments of containers (docs/reference/overrides.md).

The overriders of one rule chain per container. Each changed field yields one `replace`, which also creates the field.
Missing containers are skipped, because one policy often applies to several workloads.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.podspec import find

Values = list[Any] | None
_Change = Callable[[Values, Mapping[str, Any]], Values]


def compute_command_patches(
    template: Mapping[str, Any], overriders: Sequence[Mapping[str, Any]], field: str
) -> list[dict[str, Any]]:
    """Return the patches of the command or args overriders; `field` is "command" or "args"."""
    return _compute(template, overriders, field=field, label=field, change=_change_strings)


def compute_env_patches(template: Mapping[str, Any], overriders: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the patches of the env overriders."""
    return _compute(template, overriders, field="env", label="envs", change=_change_variables)


def _compute(
    template: Mapping[str, Any],
    overriders: Sequence[Mapping[str, Any]],
    *,
    field: str,
    label: str,
    change: _Change,
) -> list[dict[str, Any]]:
    values: dict[str, Values] = {}
    for index, overrider in enumerate(overriders):
        try:
            container = find(template, overrider.get("containerName", ""))
            if container is None:
                continue
            path = f"{container.pointer}/{field}"
            values[path] = change(values[path] if path in values else container.value.get(field), overrider)
        except OverrideError as error:
            raise error.within(f"{label}[{index}]") from error
    return [{"op": "replace", "path": path, "value": values[path]} for path in sorted(values)]


def _change_strings(current: Values, overrider: Mapping[str, Any]) -> Values:
    value: Values = overrider.get("value")
    match overrider.get("operator") or "":
        case "append":
            if not value:
                raise OverrideError("append operation needs value")
            return [*(current or ()), *value]
        case "overwrite":
            return value
        case "delete":
            # Null rather than an empty list, so that the container uses the default of its image.
            return [item for item in current or () if item not in (value or ())] or None
        case other:
            raise OverrideError(f"unsupported operator: {other!r} is none of append, overwrite, delete")


def _change_variables(current: Values, overrider: Mapping[str, Any]) -> Values:
    variables: list[Any] = overrider.get("value") or []
    named = {variable.get("name", ""): variable for variable in variables}
    present = current or []
    match overrider.get("operator") or "overwrite":
        case "addIfAbsent":
            _check_absent(present, variables)
            return [*present, *variables]
        case "overwrite":
            return [named.get(variable.get("name", ""), variable) for variable in present] or None
        case "delete":
            return [variable for variable in present if variable.get("name", "") not in named] or None
        case other:
            if variables:
                raise OverrideError(f"unsupported operator: {other!r} is none of addIfAbsent, overwrite, delete")
            return present or None


def _check_absent(present: Sequence[Mapping[str, Any]], variables: Sequence[Mapping[str, Any]]) -> None:
    if not variables:
        raise OverrideError("addIfAbsent operation needs value")
    seen = {variable.get("name", "") for variable in present}
    for variable in variables:
        name = variable.get("name", "")
        if name in seen:
            raise OverrideError(f"the variable {name!r} already exists")
        seen.add(name)
