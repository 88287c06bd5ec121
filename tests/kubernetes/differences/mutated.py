"""Valid objects with one field changed: created, put, patched and applied; and manifests as they are."""

from collections.abc import Iterable, Iterator
from typing import Final

from tests.kubernetes.differences.corpus import Manifest
from tests.kubernetes.differences.mutations import mutations
from tests.kubernetes.differences.requests import MANAGER, Request, Target, key, request, within
from tests.support.rest import APPLY, JSON_PATCH, MERGE, STRATEGIC, Object

_PARTS: Final = ("spec", "status", "data", "rules", "subjects", "webhooks", "endpoints", "subsets")
_OPTIONS: Final = {"dryRun": "All", "fieldManager": MANAGER}


def manifest_requests(served: dict[tuple[str, str], Target], listed: Iterable[Manifest]) -> Iterator[Request]:
    """Yield a create of each manifest whose kind is served, as a dry run."""
    for each in listed:
        if kind := served.get((each.obj["apiVersion"], each.obj["kind"])):
            origin = f"manifests: {each.origin} {each.obj['kind']}"
            yield request(origin, "POST", kind.root, within(each.obj, kind), fieldValidation="Warn", **_OPTIONS)


def mutated_requests(kind: Target, obj: Object, live: Object | None) -> Iterator[Request]:
    """Yield a create, and for a stored object a PUT, of each mutation."""
    name = obj["metadata"].get("name", "")
    for change, mutated in mutations(obj):
        wrong = within(mutated, kind)
        yield request(f"creates: {key(obj)}: {change}", "POST", kind.root, wrong, fieldValidation="Warn", **_OPTIONS)
        if live is not None and name:
            yield request(f"updates: {key(obj)}: PUT {change}", "PUT", f"{kind.root}/{name}", wrong, **_OPTIONS)


def patch_requests(kind: Target, obj: Object, live: Object) -> Iterator[Request]:
    """Yield patches, an apply, and PUTs of the stored object and of its status."""
    origin, url = f"updates: {key(obj)}", f"{kind.root}/{live['metadata']['name']}"
    for part in ("labels", "annotations"):
        body = {"metadata": {part: {"x": "y"}}}
        yield request(f"{origin}: merge {part}", "PATCH", url, body, type_=MERGE, **_OPTIONS)
        yield request(f"{origin}: strategic {part}", "PATCH", url, body, type_=STRATEGIC, **_OPTIONS)
        step = {"op": "add", "path": f"/metadata/{part}", "value": {"x": "y"}}
        yield request(f"{origin}: json {part}", "PATCH", url, [step], type_=JSON_PATCH, **_OPTIONS)
    for part in _PARTS:
        yield request(f"{origin}: null {part}", "PATCH", url, {part: None}, type_=MERGE, **_OPTIONS)
        if part in obj:
            yield request(f"{origin}: same {part}", "PATCH", url, {part: obj[part]}, type_=STRATEGIC, **_OPTIONS)
    applied = {field: value for field, value in obj.items() if field != "status"}
    yield request(
        f"{origin}: apply", "PATCH", url, applied, type_=APPLY, dryRun="All", fieldManager="applier", force="true"
    )
    yield request(f"{origin}: put live", "PUT", url, live, **_OPTIONS)
    metadata = {**live["metadata"], "labels": {"q": "r"}, "annotations": {"q": "r"}, "finalizers": ["a.b/c"]}
    status = {**live, "spec": {}, "metadata": metadata}
    yield request(f"{origin}: put status", "PUT", f"{url}/status", status, **_OPTIONS)
