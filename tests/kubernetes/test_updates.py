"""A real API server and ours answer updates of the same objects alike: PUT, every kind of PATCH, and of the status.

The objects are those of `seeds/`, stored on both. Every update is a dry run, so each starts from the same object: PUT of
every mutation (`mutations.py`), patches of the metadata and of whole parts, an apply, and a PUT of the status with other
metadata. Creates of the same mutations are compared by `test_manifests.py`; what differs there is not counted again.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any, Final, NamedTuple

from tests.kubernetes import corpus
from tests.kubernetes.comparison import Answer, differences, sent
from tests.kubernetes.mutations import mutations
from tests.kubernetes.session import NAMESPACE, served_kinds
from tests.kubernetes.test_manifests import DELIBERATE
from tests.support.rest import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api, Object

DIFFERING_MAX: Final = 110
"""Of about 21,000 updates: most are causes of wrong specs of volumes and claims, refused by both servers."""
COMPARED_MIN: Final = 9000
CONTROLLERS: Final = {
    r"^(object: status\.|answer: .*409).*(hard|used|resourcequotas)": "only ours has a quota controller here",
    r"object: rules: real null|clusterroles\.rbac.*modified": "only ours has a controller of aggregated roles here",
    r"answer: real 409 Conflict.*customresourcedefinitions": "the real server accepts a CRD's names a moment later",
    r"object: metadata\.annotations\.deprecated\.daemonset|object: metadata\.labels\.(batch|controller-uid|job-name)": (
        "as in creates"
    ),
    r"answer: real 500": "an error of the real server",
}
"""What differs because this real server has no controllers, or as in creates."""
_PARTS: Final = ("spec", "status", "data", "rules", "subjects", "webhooks", "endpoints", "subsets")
_CONNECTIONS: Final = 4


class _Update(NamedTuple):
    origin: str
    method: str
    url: str
    body: Any
    type_: str = "application/json"


def test_updates_are_answered_alike(servers: tuple[Api, Api]) -> None:
    real, ours = (answers(api) for api in servers)
    compared = real.keys() & ours.keys()
    expected = {**DELIBERATE, **CONTROLLERS}
    found = {}
    for origin in sorted(compared):
        if differences(*created(origin, real, ours)):
            continue
        lines = [re.sub(r"\[\d+\]", "[]", line) for line in differences(real[origin], ours[origin])]
        if lines := [line for line in lines if not any(re.search(text, line) for text in expected)]:
            found[origin] = lines
    print(f"{len(compared)} updates, {len(found)} differ")
    for origin, lines in found.items():
        print(f"{origin}: {lines[0][:300]}")
    assert len(compared) >= COMPARED_MIN
    assert len(found) <= DIFFERING_MAX


def created(origin: str, real: dict[str, Answer], ours: dict[str, Answer]) -> tuple[Answer, Answer]:
    """Return both answers to the create of what an update puts; the same ones twice if it is no PUT."""
    name = origin.replace(": PUT ", ": POST ")
    return (real[name], ours[name]) if name in real and name in ours else (real[origin], real[origin])


def answers(api: Api) -> dict[str, Answer]:
    """Create every seed and return the answers to its updates, and to dry runs of creates of its mutations."""
    served = served_kinds(api)
    updates: list[_Update] = []
    for seed in corpus.seeds():
        obj = deepcopy(seed.obj)
        plural, namespaced = served[obj["apiVersion"], obj["kind"]]
        version = obj["apiVersion"]
        scope = f"/namespaces/{NAMESPACE}" if namespaced else ""
        root = f"{f'/apis/{version}' if '/' in version else f'/api/{version}'}{scope}/{plural}"
        if namespaced:
            obj["metadata"]["namespace"] = NAMESPACE
        stored = sent(api.http, "POST", f"{root}?fieldManager=corpus", obj)
        if stored.is_accepted and obj["metadata"].get("name"):
            updates += _updates(root, obj, stored.body)
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        found = pool.map(lambda each: sent(api.http, each.method, each.url, each.body, type_=each.type_), updates)
        return {update.origin: answer for update, answer in zip(updates, found, strict=True)}


def _updates(root: str, obj: Object, live: Object) -> Iterator[_Update]:
    name, origin = obj["metadata"]["name"], f"{obj['kind']} {obj['metadata']['name']}"
    url, options = f"{root}/{name}", "dryRun=All&fieldManager=corpus"
    for change, mutated in mutations(obj):
        if isinstance(metadata := mutated.get("metadata"), dict):
            mutated["metadata"] = {field: value for field, value in metadata.items() if field != "resourceVersion"}
        yield _Update(f"{origin}: PUT {change}", "PUT", f"{url}?{options}", mutated)
        if isinstance(metadata, dict) and metadata.get("name") == name:
            other = {**mutated, "metadata": {**mutated["metadata"], "name": f"{name}-x"}}
            yield _Update(f"{origin}: POST {change}", "POST", f"{root}?{options}", other)
    for part in ("labels", "annotations"):
        body = {"metadata": {part: {"x": "y"}}}
        yield _Update(f"{origin}: merge {part}", "PATCH", f"{url}?{options}", body, MERGE)
        yield _Update(f"{origin}: strategic {part}", "PATCH", f"{url}?{options}", body, STRATEGIC)
        step = {"op": "add", "path": f"/metadata/{part}", "value": {"x": "y"}}
        yield _Update(f"{origin}: json {part}", "PATCH", f"{url}?{options}", [step], JSON_PATCH)
    for part in _PARTS:
        yield _Update(f"{origin}: null {part}", "PATCH", f"{url}?{options}", {part: None}, MERGE)
        if part in obj:
            yield _Update(f"{origin}: same {part}", "PATCH", f"{url}?{options}", {part: obj[part]}, STRATEGIC)
    applied = {field: value for field, value in obj.items() if field != "status"}
    forced = f"{url}?dryRun=All&fieldManager=applier&force=true"
    yield _Update(f"{origin}: apply", "PATCH", forced, applied, APPLY)
    yield _Update(f"{origin}: put live", "PUT", f"{url}?{options}", live)
    metadata = {**live["metadata"], "labels": {"q": "r"}, "annotations": {"q": "r"}, "finalizers": ["a.b/c"]}
    status = {**live, "spec": {}, "metadata": metadata}
    yield _Update(f"{origin}: put status", "PUT", f"{url}/status?{options}", status)
