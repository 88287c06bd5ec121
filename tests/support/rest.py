"""Raw HTTPS requests to any Kubernetes API server in one namespace, for suites that every implementation must pass.

`Api` builds URLs. Bodies are parsed JSON; responses of 400 and above are raised as `Refused` with the server's Status.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import orjson
import pytest

from federation.apimachinery.connection import Connection

Object = dict[str, Any]
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_WAIT_S_MAX = 90.0
_GROUPS = {
    "apps/v1": "deployments replicasets statefulsets daemonsets controllerrevisions",
    "batch/v1": "jobs cronjobs",
    "coordination.k8s.io/v1": "leases",
    "policy/v1": "poddisruptionbudgets",
    "networking.k8s.io/v1": "ingresses networkpolicies servicecidrs ipaddresses",
    "certificates.k8s.io/v1": "certificatesigningrequests",
    "flowcontrol.apiserver.k8s.io/v1": "flowschemas prioritylevelconfigurations",
    "resource.k8s.io/v1": "resourceclaims resourceclaimtemplates resourceslices deviceclasses",
    "storage.k8s.io/v1": "volumeattributesclasses",
    "core.kubeadmiral.io/v1alpha1": "collectedstatuses federatedclusters federatedobjects federatedtypeconfigs"
    " clusterpropagationpolicies overridepolicies placementholds propagationpolicies",
    "rbac.authorization.k8s.io/v1": "roles rolebindings clusterroles clusterrolebindings",
    "apiextensions.k8s.io/v1": "customresourcedefinitions",
    "apiregistration.k8s.io/v1": "apiservices",
    "scheduling.k8s.io/v1": "priorityclasses",
    "admissionregistration.k8s.io/v1": "validatingadmissionpolicies validatingadmissionpolicybindings"
    " validatingwebhookconfigurations mutatingwebhookconfigurations mutatingadmissionpolicies"
    " mutatingadmissionpolicybindings",
}
_GROUP_OF = {plural: group for group, plurals in _GROUPS.items() for plural in plurals.split()}
_CLUSTER_SCOPED = {"namespaces", "nodes", "customresourcedefinitions", "clusterroles", "clusterrolebindings"} | {
    "persistentvolumes",
    "priorityclasses",
    "servicecidrs",
    "ipaddresses",
    "certificatesigningrequests",
    "flowschemas",
    "prioritylevelconfigurations",
    "resourceslices",
    "deviceclasses",
    "volumeattributesclasses",
    "apiservices",
    "clusterpropagationpolicies",
    "federatedclusters",
    "federatedtypeconfigs",
    "placementholds",
    *_GROUPS["admissionregistration.k8s.io/v1"].split(),
}


class Refused(Exception):  # read as a sentence: pytest.raises(Refused)
    """A response of 400 and above: its code, and the Status in its body."""

    def __init__(self, answer: httpx.Response) -> None:
        answer.read()
        self.code = answer.status_code
        try:
            self.status: Object = answer.json()
        except ValueError:
            self.status = {"message": answer.text}
        self.reason = self.status.get("reason", "")
        self.message = self.status.get("message", "")
        self.causes = (self.status.get("details") or {}).get("causes") or []
        super().__init__(f"{self.code} {self.reason}: {self.message}")

    @property
    def fields(self) -> list[str]:
        return [cause.get("field", "") for cause in self.causes]


@contextlib.contextmanager
def refused(code: int, reason: str = "", text: str = "") -> Iterator["pytest.ExceptionInfo[Refused]"]:
    """Expect `Refused` with this code, reason and part of the message."""
    with pytest.raises(Refused) as caught:
        yield caught
    assert caught.value.code == code, caught.value
    if reason:
        assert caught.value.reason == reason, caught.value
    assert text in caught.value.message, caught.value


def eventually(check: Callable[[], Any], wait_s_max: float = _WAIT_S_MAX) -> Any:
    """Return the result of `check` once it is true; for background work of the server."""
    deadline = time.monotonic() + wait_s_max
    pause_s = 0.005
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, "the condition never became true"
        threading.Event().wait(pause_s)
        pause_s = min(pause_s * 1.5, 0.25)


def until_not_refused(write: Callable[[], Any], text: str) -> Any:
    """Return the result of a write; it is repeated while it is refused with `text`, for what a server learns late."""

    def result() -> list[Any]:
        try:
            return [write()]
        except Refused as refusal:
            if text not in refusal.message:
                raise
            return []

    return eventually(result)[0]


def unless_modified(write: Callable[[], Any]) -> Any:
    """Return the result of a read and write; both are repeated when a controller wrote in between."""
    return until_not_refused(write, "has been modified")


class Api:
    """Requests of one identity in one namespace; resources are named PLURAL or GROUP/VERSION/PLURAL."""

    def __init__(self, connection: Connection, namespace: str = "", http: httpx.Client | None = None) -> None:
        self.connection = connection
        self.namespace = namespace
        headers = {"authorization": f"Bearer {connection.token}"} if connection.token else {}
        self.http = http or httpx.Client(
            base_url=connection.server,
            verify=connection.to_tls() or True,
            timeout=_WAIT_S_MAX,
            headers=headers,
            trust_env=False,
        )

    def close(self) -> None:
        self.http.close()

    def within(self, namespace: str) -> "Api":
        """Return requests in another namespace, by the same connections."""
        return Api(self.connection, namespace, self.http)

    def url(self, plural: str, name: str = "", subresource: str = "", namespace: str | None = None) -> str:
        """Return a path; `namespace` "" is the cluster scope."""
        group, _, plural_ = plural.rpartition("/")
        group = group or _GROUP_OF.get(plural, "v1")
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        scope = self.namespace if namespace is None else namespace
        if plural in _CLUSTER_SCOPED:
            scope = ""
        parts = [root, f"namespaces/{scope}" if scope else "", plural_, name, subresource]
        return "/".join(part for part in parts if part)

    def send(
        self,
        method: str,
        url: str,
        body: Any = None,
        *,
        type_: str = "application/json",
        accept: str = "application/json",
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> httpx.Response:
        """Send a request and return the response; Refused for codes of 400 and above."""
        content = body if isinstance(body, (bytes, type(None))) else orjson.dumps(body)
        given = {"accept": accept, **({"content-type": type_} if content is not None else {}), **(headers or {})}
        params = {name: _to_text(value) for name, value in query.items()}
        answer = self.http.request(method, url, content=content, headers=given, params=params or None)
        if answer.status_code >= 400:
            raise Refused(answer)
        return answer

    def create(self, plural: str, obj: Object, *, subresource: str = "", name: str = "", **query: Any) -> Object:
        return self.send("POST", self.url(plural, name, subresource), obj, **query).json()

    def get(self, plural: str, name: str, subresource: str = "", **query: Any) -> Object:
        return self.send("GET", self.url(plural, name, subresource), **query).json()

    def list(self, plural: str, *, namespace: str | None = None, **query: Any) -> Object:
        return self.send("GET", self.url(plural, namespace=namespace), **query).json()

    def names(self, plural: str, **query: Any) -> "list[str]":
        return [item["metadata"]["name"] for item in self.list(plural, **query)["items"]]

    def update(self, plural: str, obj: Object, subresource: str = "", **query: Any) -> Object:
        return self.send("PUT", self.url(plural, obj["metadata"]["name"], subresource), obj, **query).json()

    def patch(
        self, plural: str, name: str, patch: Any, subresource: str = "", *, type_: str = MERGE, **query: Any
    ) -> Object:
        return self.send("PATCH", self.url(plural, name, subresource), patch, type_=type_, **query).json()

    def apply(
        self,
        plural: str,
        obj: Object,
        manager: str = "one",
        subresource: str = "",
        *,
        force: bool = False,
        **query: Any,
    ) -> Object:
        query |= {"fieldManager": manager} | ({"force": "true"} if force else {})
        return self.patch(plural, obj["metadata"]["name"], obj, subresource, type_=APPLY, **query)

    def delete(self, plural: str, name: str, options: Object | None = None, **query: Any) -> Object:
        return self.send("DELETE", self.url(plural, name), options, **query).json()

    def find(self, plural: str, name: str) -> Object | None:
        """Return the object, None if there is none."""
        try:
            return self.get(plural, name)
        except Refused as refusal:
            if refusal.code != 404:
                raise
            return None

    def exists(self, plural: str, name: str) -> bool:
        return self.find(plural, name) is not None

    def wait_gone(self, plural: str, name: str) -> None:
        eventually(lambda: not self.exists(plural, name))

    @contextlib.contextmanager
    def watch(
        self,
        plural: str,
        *,
        namespace: str | None = None,
        name: str = "",
        accept: str = "application/json",
        **query: Any,
    ) -> Iterator["Watch"]:
        params = {"watch": "true", **{key: _to_text(value) for key, value in query.items()}}
        url = self.url(plural, name, namespace=namespace)
        with self.http.stream("GET", url, params=params, headers={"accept": accept}) as answer:
            if answer.status_code >= 400:
                raise Refused(answer)
            yield Watch(answer)


class Watch:
    """The events of one watch, in order."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.iter_lines()

    def __iter__(self) -> Iterator[tuple[str, Object]]:
        """Yield type and object of every event until the server ends the watch."""
        for line in self._lines:
            if line:
                event = orjson.loads(line)
                yield event["type"], event["object"]

    def next(self) -> tuple[str, Object]:
        return next(iter(self))

    def said(self, count: int) -> list[tuple[str, str]]:
        """Return types and names of the next `count` events."""
        return [(type_, obj["metadata"].get("name", "")) for type_, obj in (self.next() for _ in range(count))]


def _to_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
