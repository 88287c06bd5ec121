"""`fedctl convert`: manifests of Karmada, KubeFed and removed API versions as ours (docs/reference/fedctl.md).

`command.py` reads and prints, `rules/` has a module per source.
"""

from collections.abc import Callable

from federation.featureapi.feature import Feature


def _convert() -> Callable[..., None]:
    from federation.features.convert.command import convert_command

    return convert_command


FEATURE = Feature(
    "convert",
    page="fedctl.md",
    commands={"convert": _convert},
)
