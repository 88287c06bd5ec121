"""Karmada's ResourceInterpreterCustomization as a FederatedTypeConfig. Pure.

Karmada interprets a kind by Lua scripts; here it has paths of fields, and CEL for its status. The path of the replicas
is read from a script that only assigns it. Other scripts cannot be converted: a note names what to write instead.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import default_type_configs
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import FieldReader

_ASSIGNED = re.compile(r"\bdesiredObj\.([A-Za-z_][\w.]*)\s*=\s*desiredReplica\b")
_CHANGED = re.compile(r"\bdesiredObj\b[\w.\[\]\"']*\s*=(?!=)")
_READ = re.compile(r"\bdesiredObj\.([A-Za-z_][\w.]*)")
_NOTES = {
    "retention": "a field that the host does not set is left to the member; write others as CEL in spec.retention",
    "statusReflection": "the whole status of custom kinds is merged; name more fields in spec.statusCollection.fields",
    "statusAggregation": "write the fields as CEL in spec.statusAggregation.rules",
    "healthInterpretation": "write it as CEL in spec.health",
    "dependencyInterpretation": f"name the objects in the annotation {names.FOLLOWERS} of the object",
    "replicaResource": "resources are read from the pod template; describe other pods in spec.components",
}


def to_type_config(spec: FieldReader, definitions: Iterable[Mapping[str, Any]]) -> Object | None:
    """Return the configuration of the kind, None if one ships; `definitions` are known CustomResourceDefinitions."""
    target = spec.child("target")
    api_version, kind = target.text("apiVersion"), target.text("kind")
    group, _, version = api_version.rpartition("/")
    rules = spec.child("customizations")
    path = _replicas_path(rules)
    for key, message in _NOTES.items():
        if not (key == "replicaResource" and path and _is_plain(rules, path)):
            rules.drop(key, message)
    if any(
        (source["group"], source["kind"]) == (group, kind)
        for source in ({"group": "", **config["spec"]["sourceType"]} for config in default_type_configs())
    ):
        target.note("", f"a FederatedTypeConfig for {kind} is there on every host; change that one if need be")
        return None
    plural, scope = _names(kind, group, definitions)
    if not scope:
        target.note("", f"{plural} as plural name and Namespaced as scope are assumed; add the kind's definition")
    source = {"group": group, "version": version, "kind": kind, "pluralName": plural, "scope": scope or "Namespaced"}
    config: Object = {"sourceType": source}
    if path:
        config["pathDefinition"] = {"replicasSpec": path}
    return {
        "apiVersion": FEDERATED_TYPE_CONFIGS.api_version,
        "kind": FEDERATED_TYPE_CONFIGS.kind,
        "metadata": {"name": f"{plural}.{group}" if group else plural},
        "spec": config,
    }


def _replicas_path(rules: FieldReader) -> str:
    """Return the one field that the revision assigns; "" with a note if the script does anything else."""
    if not rules.has("replicaRevision"):
        return ""
    revision = rules.child("replicaRevision")
    script = revision.text("luaScript")
    found = _ASSIGNED.findall(script)
    if len(found) == 1 and len(_CHANGED.findall(script)) == 1:
        return str(found[0])
    revision.note("luaScript", "replicas are one field; name it in spec.pathDefinition.replicasSpec")
    return ""


def _is_plain(rules: FieldReader, path: str) -> bool:
    """Return whether the script that reads the replicas reads that field only."""
    script = rules.child("replicaResource").text("luaScript")
    return set(_READ.findall(script)) == {path}


def _names(kind: str, group: str, definitions: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """Return plural name and scope; the scope is "" if they are guessed."""
    for definition in definitions:
        spec = definition.get("spec") or {}
        accepted = spec.get("names") or {}
        if (spec.get("group"), accepted.get("kind")) == (group, kind):
            return str(accepted.get("plural")), str(spec.get("scope"))
    word = kind.lower()
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies", ""
    return (f"{word}es" if re.search(r"(s|x|ch|sh)$", word) else f"{word}s"), ""
