"""The dry runs of the comparison on one server."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from tests.kubernetes.comparison import Answer, sent
from tests.kubernetes.corpus import Manifest
from tests.support.rest import Api, Object, Refused

NAMESPACE: Final = "corpus"
_DRY_RUN: Final = "dryRun=All&fieldValidation=Warn&fieldManager=corpus"
_CONNECTIONS: Final = 4


def prepare(api: Api) -> None:
    """Create what the manifests need: their namespace and its service account."""
    api.namespace = NAMESPACE
    api.create("namespaces", {"metadata": {"name": NAMESPACE}})
    try:
        api.create("serviceaccounts", {"metadata": {"name": "default"}})
    except Refused as refusal:
        if refusal.code != 409:  # our server creates it as well
            raise


def send_all(api: Api, listed: Sequence[Manifest]) -> dict[str, Answer]:
    """Create every manifest as a dry run and return the answers by origin; kinds that are not served have none."""
    served = served_kinds(api)

    def send(manifest: Manifest) -> tuple[str, Answer | None]:
        obj = dict(manifest.obj)
        version = obj["apiVersion"]
        resource = served.get((version, obj["kind"]))
        if resource is None:
            return manifest.origin, None
        plural, namespaced = resource
        if isinstance(obj.get("metadata"), dict):
            # The real server ignores a revision in a dry run, and refuses it otherwise.
            obj["metadata"] = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
            if namespaced:
                obj["metadata"]["namespace"] = NAMESPACE
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        scope = f"/namespaces/{NAMESPACE}" if namespaced else ""
        return manifest.origin, sent(api.http, "POST", f"{root}{scope}/{plural}?{_DRY_RUN}", obj)

    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        return {origin: answer for origin, answer in pool.map(send, listed) if answer is not None}


def served_kinds(api: Api) -> dict[tuple[str, str], tuple[str, bool]]:
    """Return plural and scope of every kind that can be created, by group version and kind."""
    found: dict[tuple[str, str], tuple[str, bool]] = {}
    groups: list[Any] = api.send("GET", "/apis").json()["groups"]
    for version in ["v1", *(each["groupVersion"] for group in groups for each in group["versions"])]:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        resources: list[Object] = api.send("GET", root).json()["resources"]
        for each in resources:
            if "/" not in each["name"] and "create" in each.get("verbs", ()):
                found[version, each["kind"]] = (each["name"], each["namespaced"])
    return found
