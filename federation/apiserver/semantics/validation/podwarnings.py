"""Warnings about pod specs, in kube-apiserver's words and order: lists that name a key twice. Pure.

Such a list is accepted, but server-side apply cannot address its items, so an apply may drop or refuse them.
"""

from collections.abc import Iterator, Mapping
from typing import Any


def repeated_keys(spec: Any, field: str) -> list[str]:
    """Return the warnings about the pod spec at `field`, for example `spec.template.spec`."""
    if not isinstance(spec, Mapping):
        return []
    found = [
        *_repeated(spec.get("hostAliases"), f"{field}.hostAliases", "ip"),
        *_repeated(spec.get("imagePullSecrets"), f"{field}.imagePullSecrets", "name"),
    ]
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            found += _in_container(container, f"{field}.{kind}[{index}]")
    return found


def _repeated(items: Any, field: str, key: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items or ()):
        value = item.get(key, "")
        if value in seen:
            yield f'{field}[{index}].{key}: duplicate {key} "{value}"'
        seen.add(value)


def _in_container(container: Mapping[str, Any], field: str) -> Iterator[str]:
    variables = set()
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name", "")
        if name in variables:
            yield f'{field}.env[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        variables.add(name)
    ports: dict[tuple[Any, Any], int] = {}
    for index, port in enumerate(container.get("ports") or ()):
        first = ports.setdefault((port.get("containerPort"), port.get("protocol", "TCP")), index)
        if first != index:
            yield f"{field}.ports[{index}]: duplicate port definition with {field}.ports[{first}]"
