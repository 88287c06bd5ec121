"""Read the other world of `fedctl replay` from its options."""

from collections.abc import Iterable
from pathlib import Path

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.nearestfile import unreadable
from federation.features.catalogue import decision_chain
from federation.planning.cost.ratelist import parse_rates
from federation.scheduling.replay.otherworld import Changes, to_changed_object
from federation.terminal.manifests import read_manifests


def read_changes(
    files: Iterable[str], profile: str, price_list: Path | None, without: Iterable[str], like: Iterable[str]
) -> Changes:
    """Return how the world differs from the recorded one; ConfigurationError names the option that cannot be used."""
    objects = {}
    for document in read_manifests(files):
        try:
            key, obj = to_changed_object(document.manifest, decision_chain())
        except ConfigurationError as error:
            raise ConfigurationError(f"{document.origin}: {error}") from error
        objects[key] = obj
    added: dict[str, str] = {}
    for name in like:
        added[f"{name}-like-{len(added) + 1}"] = name
    rates = {}
    if price_list is not None:
        try:
            rates = dict(parse_rates(price_list.read_bytes()))
        except OSError as error:
            raise ConfigurationError(f"--price-list {price_list}: {unreadable(price_list, error)}") from error
        except ValueError as error:
            raise ConfigurationError(f"--price-list {price_list}: {error}") from error
    return Changes(objects, frozenset(without), added, rates, profile)
