"""Override parts of image references (docs/reference/overrides.md), in Docker's reference grammar.

A reference is [registry/]repository[:tag][@digest]; the first path segment is a registry only when it looks like a
host. Several overriders on one image chain within a rule.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.podspec import containers

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"{_HOST}(?:\.{_HOST})*(?::[0-9]+)?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?"
)
_NAME_LENGTH_MAX = 255
_COMPONENTS = {"Registry": "registry", "Repository": "repository", "Tag": "tag", "Digest": "digest"}


@dataclass(frozen=True, slots=True)
class Image:
    """The parts of an image reference; absent parts are empty."""

    registry: str = ""
    repository: str = ""
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return (
            (f"{self.registry}/" if self.registry else "")
            + self.repository
            + (f":{self.tag}" if self.tag else "")
            + (f"@{self.digest}" if self.digest else "")
        )


@lru_cache(maxsize=1024)
def parse_image(reference: str) -> Image:
    """Return the parts of the reference without a default registry; OverrideError when it is malformed."""
    match = _REFERENCE.fullmatch(reference)
    if match is None or len(match["name"]) > _NAME_LENGTH_MAX:
        # The text itself is not shown: an imagePath may lead to the data of a Secret, and Events quote the error.
        raise OverrideError("the present text is not an image reference")
    first, slash, rest = match["name"].partition("/")
    has_registry = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return Image(
        registry=first if has_registry else "",
        repository=rest if has_registry else match["name"],
        tag=match["tag"] or "",
        digest=match["digest"] or "",
    )


def compute_image_patches(template: Mapping[str, Any], overriders: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one replace per changed image, sorted by path; OverrideError with the failing overrider."""
    images: dict[str, str] = {}
    for index, overrider in enumerate(overriders):
        try:
            for path, value in _images(template, overrider):
                images[path] = _change(images.get(path, value), overrider.get("operations") or ())
        except OverrideError as error:
            raise error.within(f"image[{index}]") from error
    return [{"op": "replace", "path": path, "value": images[path]} for path in sorted(images)]


def _images(template: Mapping[str, Any], overrider: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return pointer and value of the overrider's images."""
    if path := overrider.get("imagePath"):
        return [(path, _image_at(template, path))]
    wanted = overrider.get("containerNames") or ()
    return [
        (f"{container.pointer}/image", str(container.value.get("image") or ""))
        for container in containers(template)
        if not wanted or (container.name and container.name in wanted)
    ]


def _image_at(template: Mapping[str, Any], path: str) -> str:
    if not path.startswith("/"):
        raise OverrideError(f"imagePath {path!r} does not start with a slash")
    value: Any = template
    for key in path[1:].split("/"):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list):
            if not key.isascii() or not key.isdecimal() or int(key) >= len(value):
                raise OverrideError(f"imagePath {path!r}: there is no list item {key!r}")
            value = value[int(key)]
        else:
            raise OverrideError(f"imagePath {path!r}: there is no map or list above {key!r}")
    if not isinstance(value, str):
        raise OverrideError(f"imagePath {path!r}: there is no text")
    return value


def _change(reference: str, operations: Sequence[Mapping[str, Any]]) -> str:
    image = parse_image(reference)
    for index, operation in enumerate(operations):
        try:
            image = _operate(image, operation)
        except OverrideError as error:
            raise error.within(f"operations[{index}]") from error
    return str(image)


def _operate(image: Image, operation: Mapping[str, Any]) -> Image:
    component = operation.get("imageComponent") or ""
    field = _COMPONENTS.get(component)
    if field is None:
        raise OverrideError(f"imageComponent {component!r} is none of {', '.join(_COMPONENTS)}")
    value = operation.get("value") or ""
    match operation.get("operator") or "overwrite":
        case "addIfAbsent":
            if not value:
                raise OverrideError("addIfAbsent operation needs value")
            if getattr(image, field):
                raise OverrideError(f"{component} is already set")
        case "overwrite":
            pass
        case "delete":
            value = ""
        case other:
            raise OverrideError(f"operator {other!r} is none of addIfAbsent, overwrite, delete")
    _check_component(component, value)
    return replace(image, **{field: value})


def _check_component(component: str, value: str) -> None:
    pattern = {"Tag": _TAG, "Digest": _DIGEST}.get(component)
    if value and pattern is not None and re.fullmatch(pattern, value) is None:
        raise OverrideError(f"the value is not a valid {component.lower()}")  # unquoted: it may be for a Secret
