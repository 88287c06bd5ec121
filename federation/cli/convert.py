"""`fedctl convert`: manifests with API versions that Kubernetes has removed, in the versions that replace them.

The API server refuses such manifests, as Kubernetes does. Every command line imports this module, so PyYAML is imported
when it is needed.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, Object
from federation.cli.execution import execute


def convert_command(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Manifests; - for standard input.")],
) -> None:
    """Print manifests with API versions that Kubernetes serves.

    Converts HorizontalPodAutoscalers of autoscaling/v2beta1 and v2beta2 to autoscaling/v2. Other objects are printed
    as they are. Comments are lost.

    \b
    fedctl convert old.yaml | kubectl apply -f -
    """  # noqa: D301  # the backspace keeps lines apart in the help
    execute(_convert_files(files))


async def _convert_files(files: list[str]) -> int:
    import yaml  # noqa: PLC0415  # see the module's docstring

    converted = [convert(document, file) for file in files for document in _read(file)]
    print(yaml.safe_dump_all(converted, sort_keys=False), end="")
    return 0


def convert(obj: Any, file: str = "") -> Any:
    """Return the object in a served API version; ConfigurationError if it is malformed."""
    convert_kind = _CONVERTERS.get((obj.get("apiVersion"), obj.get("kind"))) if isinstance(obj, dict) else None
    if convert_kind is None:
        return obj
    try:
        return convert_kind(obj)
    except (AttributeError, TypeError) as error:
        raise ConfigurationError(f"{file}: {obj['kind']} cannot be converted: {error}") from None


def _from_v2beta1(obj: Object) -> Object:
    from federation.apiserver.semantics.conversion.autoscalerconversion import from_v2beta1  # noqa: PLC0415  # slow

    return from_v2beta1(obj)


def _rename_version(obj: Object) -> Object:
    return {**obj, "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version}


_CONVERTERS: dict[tuple[Any, Any], Callable[[Object], Object]] = {
    ("autoscaling/v2beta1", HORIZONTAL_POD_AUTOSCALERS.kind): _from_v2beta1,
    ("autoscaling/v2beta2", HORIZONTAL_POD_AUTOSCALERS.kind): _rename_version,
}
"""Conversions by apiVersion and kind. The fields of v2beta2 are those of v2."""


def _read(file: str) -> list[Any]:
    import yaml  # noqa: PLC0415  # see the module's docstring

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: not YAML: {error}") from None
