"""`fedctl convert`: manifests of other federations, and of API versions that Kubernetes has removed, as ours.

The sources are in `rules/`; each gets all manifests and converts those that it knows. Every command line imports this
module, so PyYAML and the sources are imported when they are needed.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, Object
from federation.terminal.execution import execute, fail

if TYPE_CHECKING:
    from federation.features.convert.rules.model import Note


def convert_command(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="Manifests; - for standard input.")
    ] = None,
    more: Annotated[
        list[str] | None, typer.Option("-f", "--filename", metavar="FILE", help="The same, as kubectl writes it.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything has no exact counterpart.")] = False,
) -> None:
    """Print manifests of Karmada, KubeFed or removed API versions as this federation takes them.

    Converts Karmada's PropagationPolicy, ClusterPropagationPolicy, OverridePolicy, ClusterOverridePolicy, FederatedHPA,
    CronFederatedHPA, FederatedResourceQuota and ResourceInterpreterCustomization; KubeFed's federated kinds and
    ReplicaSchedulingPreference; and HorizontalPodAutoscalers of autoscaling/v2beta1 and v2beta2. Other objects are
    printed as they are. Comments are lost. Standard error names each field that has no counterpart, or another meaning.

    \b
    fedctl convert -f karmada.yaml | kubectl apply -f -
    kubectl get pp,cpp,op,cop -A -o yaml | fedctl convert --strict -
    """  # noqa: D301  # the backspace keeps lines apart in the help
    given = [*(files or ()), *(more or ())]
    if not given:
        fail("give the manifests: fedctl convert FILE..., or - for standard input", code=2)
    execute(_convert_files(given, is_strict=strict))


async def _convert_files(files: list[str], *, is_strict: bool) -> int:
    import yaml  # see the module's docstring

    from federation.terminal.manifests import read_manifests

    manifests = [convert(document.manifest, document.origin) for document in read_manifests(files)]
    objects, notes = convert_sources(manifests)
    dumper = type("_Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    print(yaml.dump_all(objects, Dumper=dumper, sort_keys=False), end="")
    for note in notes:
        print(": ".join(filter(None, (note.source, note.field, note.message))), file=sys.stderr)
    return 1 if notes and is_strict else 0


def convert_sources(manifests: Sequence[Object]) -> tuple[list[Object], list["Note"]]:
    """Return the manifests as all sources convert them, and the notes of all."""
    from federation.features.convert.rules import karmada, kubefed  # see the module's docstring

    objects: list[Object] = list(manifests)
    notes: list[Note] = []
    for source in (karmada.convert, kubefed.convert):
        conversion = source(objects)
        objects, notes = conversion.objects, [*notes, *conversion.notes]
    return objects, notes


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
    from federation.apiserver.semantics.conversion.autoscalerconversion import from_v2beta1  # slow

    return from_v2beta1(obj)


def _rename_version(obj: Object) -> Object:
    return {**obj, "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version}


_CONVERTERS: dict[tuple[Any, Any], Callable[[Object], Object]] = {
    ("autoscaling/v2beta1", HORIZONTAL_POD_AUTOSCALERS.kind): _from_v2beta1,
    ("autoscaling/v2beta2", HORIZONTAL_POD_AUTOSCALERS.kind): _rename_version,
}
"""Conversions by apiVersion and kind. The fields of v2beta2 are those of v2."""
