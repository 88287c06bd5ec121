"""Odd metadata, for every kind: names, labels, annotations, owners, finalizers, managed fields and system fields."""

from collections.abc import Iterator
from typing import Any, Final

from tests.kubernetes.differences.requests import MANAGER, Request, Target, key, request, within
from tests.support.rest import APPLY, MERGE, Object

UID: Final = "11111111-2222-3333-4444-555555555555"
OWNER: Final[Object] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": UID}
_CONTROLLER: Final = {**OWNER, "controller": True, "blockOwnerDeletion": True}
_ENTRY: Final[Object] = {
    "manager": "other",
    "operation": "Update",
    "apiVersion": "v1",
    "time": "2026-01-01T00:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}},
}

CHANGES: Final[dict[str, Object]] = {
    "no change": {},
    "label key": {"labels": {"no such!": "x"}},
    "label prefix": {"labels": {"No_Such/x": "x"}},
    "label value": {"labels": {"a": "no such!"}},
    "long label": {"labels": {"a" * 64: "b" * 64}},
    "empty label key": {"labels": {"": "x"}},
    "label null": {"labels": {"a": None}},
    "label number": {"labels": {"a": 1}},
    "labels list": {"labels": ["a"]},
    "annotation key": {"annotations": {"no such!": "x"}},
    "annotation case": {"annotations": {"Example.COM/a": "x"}},
    "large annotation": {"annotations": {"a": "x" * 262145}},
    "finalizer plain": {"finalizers": ["hold"]},
    "finalizer slash": {"finalizers": ["example.com/hold/it"]},
    "finalizer text": {"finalizers": ["no such!"]},
    "finalizer empty": {"finalizers": [""]},
    "finalizer twice": {"finalizers": ["example.com/hold", "example.com/hold"]},
    "finalizer long": {"finalizers": ["example.com/" + "a" * 64]},
    "finalizer known": {"finalizers": ["foregroundDeletion"]},
    "finalizer orphan and foreground": {"finalizers": ["orphan", "foregroundDeletion"]},
    "finalizer kubernetes": {"finalizers": ["kubernetes.io/unknown"]},
    "finalizer number": {"finalizers": [1]},
    "finalizer null": {"finalizers": [None]},
    "owner": {"ownerReferences": [OWNER]},
    "owner without uid": {"ownerReferences": [{**OWNER, "uid": ""}]},
    "owner without name": {"ownerReferences": [{**OWNER, "name": ""}]},
    "owner without kind": {"ownerReferences": [{**OWNER, "kind": ""}]},
    "owner without version": {"ownerReferences": [{**OWNER, "apiVersion": ""}]},
    "owner empty": {"ownerReferences": [{}]},
    "owner twice": {"ownerReferences": [OWNER, OWNER]},
    "owner twice, other name": {"ownerReferences": [OWNER, {**OWNER, "name": "other"}]},
    "two controllers": {"ownerReferences": [_CONTROLLER, {**_CONTROLLER, "uid": UID[::-1], "name": "second"}]},
    "one controller twice": {"ownerReferences": [_CONTROLLER, _CONTROLLER]},
    "owner name": {"ownerReferences": [{**OWNER, "name": "No such!"}]},
    "owner version": {"ownerReferences": [{**OWNER, "apiVersion": "a/b/c"}]},
    "owner event": {"ownerReferences": [{**OWNER, "apiVersion": "v1", "kind": "Event"}]},
    "owner unknown field": {"ownerReferences": [{**OWNER, "unknownField": 1}]},
    "generateName": {"generateName": "No such!"},
    "generateName long": {"generateName": "a" * 300},
    "generateName hyphen": {"generateName": "a-"},
    "name upper": {"name": "Upper"},
    "name long": {"name": "a" * 254},
    "name of 64": {"name": "a" * 64},
    "name dots": {"name": "a..b"},
    "name dot": {"name": "."},
    "name slash": {"name": "a/b"},
    "name percent": {"name": "a%b"},
    "name colon": {"name": "a:b"},
    "name hyphen": {"name": "-a"},
    "name digit": {"name": "1a"},
    "name empty": {"name": ""},
    "name number": {"name": 5},
    "namespace other": {"namespace": "other"},
    "uid": {"uid": UID},
    "uid text": {"uid": "no uid"},
    "generation": {"generation": 99},
    "generation negative": {"generation": -1},
    "creationTimestamp": {"creationTimestamp": "2020-01-01T00:00:00Z"},
    "creationTimestamp text": {"creationTimestamp": "yesterday"},
    "deletionTimestamp": {"deletionTimestamp": "2020-01-01T00:00:00Z"},
    "deletionGracePeriodSeconds": {"deletionGracePeriodSeconds": 5},
    "selfLink": {"selfLink": "/api/v1/x"},
    "unknown field": {"unknownField": 1},
    "managedFields null": {"managedFields": None},
    "managedFields empty": {"managedFields": []},
    "managedFields reset": {"managedFields": [{}]},
    "managedFields entry": {"managedFields": [_ENTRY]},
    "managedFields operation": {"managedFields": [{**_ENTRY, "operation": "Wish"}]},
    "managedFields type": {"managedFields": [{**_ENTRY, "fieldsType": "FieldsV2"}]},
    "managedFields no type": {"managedFields": [{**_ENTRY, "fieldsType": ""}]},
    "managedFields long manager": {"managedFields": [{**_ENTRY, "manager": "m" * 129}]},
    "managedFields manager": {"managedFields": [{**_ENTRY, "manager": "a\nb"}]},
    "managedFields long subresource": {"managedFields": [{**_ENTRY, "subresource": "s" * 257}]},
    "managedFields subresource": {"managedFields": [{**_ENTRY, "subresource": "status"}]},
    "managedFields fields": {"managedFields": [{**_ENTRY, "fieldsV1": {"x:y": {}}}]},
    "managedFields fields text": {"managedFields": [{**_ENTRY, "fieldsV1": "x"}]},
    "managedFields fields null": {"managedFields": [{**_ENTRY, "fieldsV1": None}]},
    "managedFields version": {"managedFields": [{**_ENTRY, "apiVersion": "nothing/v9"}]},
    "managedFields no version": {"managedFields": [{**_ENTRY, "apiVersion": ""}]},
    "managedFields no time": {"managedFields": [{name: value for name, value in _ENTRY.items() if name != "time"}]},
    "managedFields time": {"managedFields": [{**_ENTRY, "time": "soon"}]},
    "managedFields twice": {"managedFields": [_ENTRY, _ENTRY]},
    "managedFields apply": {"managedFields": [{**_ENTRY, "operation": "Apply"}]},
    "managedFields text": {"managedFields": "x"},
}
"""What replaces parts of the metadata."""


def metadata_requests(kind: Target, obj: Object, live: Object | None) -> Iterator[Request]:
    """Yield creates, and for a stored object PUTs, merge patches and applies, with odd metadata; all are dry runs."""
    obj = within(obj, kind)
    url, options = f"{kind.root}/{obj['metadata'].get('name', '')}", {"dryRun": "All"}
    for change, fields in CHANGES.items():
        origin = f"metadata: {key(obj)}: {change}"
        created = _with(obj, fields)
        if "name" not in fields:
            created["metadata"]["name"] = _other_name(obj)
        yield request(f"{origin}: POST", "POST", kind.root, created, fieldManager=MANAGER, **options)
        if live is None:
            continue
        replaced = _with(obj, fields)
        yield request(f"{origin}: PUT", "PUT", url, replaced, fieldManager=MANAGER, **options)
        yield request(f"{origin}: merge", "PATCH", url, {"metadata": fields}, type_=MERGE, **options)
        applied = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {"name": live["metadata"]["name"]}}
        yield request(
            f"{origin}: apply", "PATCH", url, _with(applied, fields), type_=APPLY, fieldManager=MANAGER, **options
        )


def _with(obj: Object, fields: Any) -> Object:
    return {**obj, "metadata": {**obj["metadata"], **fields}}


def _other_name(obj: Object) -> str:
    name = obj["metadata"].get("name", "x")
    return "192.168.200.9" if obj["kind"] == "IPAddress" else f"{name}x" if obj["kind"] != "APIService" else name
