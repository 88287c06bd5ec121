"""Whether a FederatedTypeConfig names the version that the host stores, and how a derived one follows it. Pure.

An object of a CustomResourceDefinition has all its fields only in the version that is stored: a read in another version
leaves out the fields that this one lacks. A configuration that was derived for a policy belongs to its definition, so
its version follows, and with it the paths that still are as they were derived. One that a user wrote stays, and its
condition says what to change. `reconcile.py` writes both.

Decision: docs/decisions/0209-kinds-follow-the-stored-version.md
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery.definitions import is_served, stored_version
from federation.apimachinery.resources import Object
from federation.features.types.names import REASON_VERSION_NOT_SERVED, REASON_VERSION_STORED
from federation.features.types.rules import plan_update, shipped_part
from federation.planning.typederivation import custom_config


class Standing(NamedTuple):
    """The condition VersionCurrent of a configuration."""

    status: str
    reason: str
    message: str = ""


def plan_version(config: Mapping[str, Any], definition: Mapping[str, Any]) -> Object:
    """Return the merge patch with which a derived configuration follows its definition, empty if it stays."""
    version, wanted = _version(config), stored_version(definition)
    if names.DERIVED_TYPE not in (config["metadata"].get("labels") or {}) or wanted in ("", version):
        return {}
    before, after = (shipped_part(custom_config(definition, each)) for each in (version, wanted))
    before["spec"]["sourceType"] = config["spec"]["sourceType"]
    return plan_update(before, config, after)


def version_standing(config: Mapping[str, Any], definition: Mapping[str, Any] | None) -> Standing | None:
    """Return the condition, None for a kind that has no definition on the host."""
    if definition is None or not (wanted := stored_version(definition)):
        return None
    version, group, name = _version(config), definition["spec"]["group"], config["metadata"]["name"]
    if version == wanted:
        return Standing("True", REASON_VERSION_STORED)
    remedy = f"set spec.sourceType.version of FederatedTypeConfig {name} to {wanted}, the version that it stores"
    if not is_served(definition, version):
        text = f"the host does not serve {group}/{version}, so nothing of the kind is read or delivered: {remedy}"
        return Standing("False", REASON_VERSION_NOT_SERVED, text)
    text = f"fields of the kind that {group}/{version} lacks do not reach the members: {remedy}"
    return Standing("False", names.REASON_VERSION_NOT_STORED, text)


def _version(config: Mapping[str, Any]) -> str:
    return str(((config.get("spec") or {}).get("sourceType") or {}).get("version") or "")
