"""The audit events of requests through the whole app."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import ADMIN, Stream, connect

from federation.apimachinery.clock import SystemClock
from federation.apiserver.audit.auditoptions import AuditOptions
from federation.apiserver.audit.auditpolicy import to_policy
from federation.apiserver.audit.log import AuditLog
from federation.apiserver.audit.trail import Auditor
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.http.app import App

PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
RULES = [
    {"level": "None", "nonResourceURLs": ["/version"]},
    {"level": "RequestResponse", "resources": [{"group": "", "resources": ["secrets", "serviceaccounts/token"]}]},
    {"level": "Request", "resources": [{"group": "", "resources": ["configmaps"]}]},
    {"level": "Metadata"},
]


class Recorder:
    """An app with an audit log."""

    def __init__(self, parts: Parts, path: Path, **policy: Any) -> None:
        self._path = path
        options = AuditOptions(path, str(path), body_bytes_max=10_000)
        manifest = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": RULES, **policy}
        self.auditor = Auditor(to_policy(manifest), AuditLog(options, SystemClock()), options, SystemClock())
        self.app: App = App(
            parts.registry,
            authenticator=parts.authenticator,
            authorizer=parts.authorizer,
            auditor=self.auditor,
        )

    async def events(self) -> list[dict[str, Any]]:
        """Close the log and return its events."""
        await self.auditor.close()
        return [orjson.loads(line) for line in self._path.read_bytes().splitlines()]


@pytest.fixture
def recorder(parts: Parts, tmp_path: Path) -> Recorder:
    return Recorder(parts, tmp_path / "audit.log", omitStages=["RequestReceived"])


@pytest.fixture
async def client(recorder: Recorder) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(recorder.app) as client:
        yield client


async def test_an_event_holds_user_request_times_source_and_status(parts: Parts, tmp_path: Path) -> None:
    recorder = Recorder(parts, tmp_path / "audit.log")
    async with connect(
        recorder.app, **{"user-agent": "test", "audit-id": "42", "x-forwarded-for": "192.0.2.7"}
    ) as client:
        answer = await client.get(f"{PODS}/web?pretty=1")
    received, complete = await recorder.events()
    assert answer.headers["audit-id"] == "42"
    assert received.pop("stage") == "RequestReceived"
    assert complete.pop("stage") == "ResponseComplete"
    assert complete.pop("responseStatus") == {
        "metadata": {},
        "status": "Failure",
        "message": 'pods "web" not found',
        "reason": "NotFound",
        "code": 404,
    }
    assert complete.pop("annotations") == {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
    assert received.pop("annotations") == {}
    assert received.pop("stageTimestamp") == received["requestReceivedTimestamp"] <= complete.pop("stageTimestamp")
    assert received == complete
    del received["requestReceivedTimestamp"]
    assert received == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "42",
        "requestURI": f"{PODS}/web?pretty=1",
        "verb": "get",
        "user": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["192.0.2.7", "127.0.0.1"],
        "userAgent": "test",
        "objectRef": {"resource": "pods", "namespace": "default", "name": "web", "apiVersion": "v1"},
    }


async def test_bodies_are_recorded_by_level_and_secrets_never(recorder: Recorder, client: httpx.AsyncClient) -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    await client.post(SECRETS, json=secret)
    await client.get(f"{SECRETS}/s", headers={"accept": "application/yaml"})
    await client.post(
        "/api/v1/namespaces/default/configmaps", json={"metadata": {"name": "c"}, "data": {"a": "hunter2"}}
    )
    token = await client.post("/api/v1/namespaces/default/serviceaccounts/default/token", json={})
    await client.post(PODS, json={"metadata": {"name": "p"}, "spec": {}})
    events = await recorder.events()
    assert b"hunter2" not in orjson.dumps(events)
    assert b"aHVudGVyMg" not in orjson.dumps(events)
    assert token.json()["status"]["token"] not in orjson.dumps(events).decode()
    create, read, config, issued, pod = events
    assert create["requestObject"]["stringData"] == {"password": "<redacted>"}
    assert create["responseObject"]["data"] == read["responseObject"]["data"] == {"password": "<redacted>"}
    assert config["requestObject"]["data"] == {"a": "<redacted>"}
    assert "responseObject" not in config
    assert issued["responseObject"]["status"]["token"] == "<redacted>"
    assert "requestObject" not in pod
    assert pod["objectRef"]["name"] == "p"
    assert pod["responseStatus"]["code"] == 422


async def test_a_forbidden_request_records_decision_and_impersonated_user(
    recorder: Recorder, client: httpx.AsyncClient
) -> None:
    await client.get(PODS, headers={"impersonate-user": "jane", "impersonate-group": "dev"})
    (event,) = await recorder.events()
    assert event["user"]["username"] == "admin"
    assert event["impersonatedUser"] == {"username": "jane", "groups": ["dev", "system:authenticated"]}
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert event["responseStatus"]["code"] == 403


async def test_invalid_credentials_and_probes_are_recorded_and_omitted_requests_are_not(
    recorder: Recorder,
) -> None:
    async with connect(recorder.app, None) as nobody:
        await nobody.get("/version")
        answer = await nobody.get("/livez")
        assert "audit-id" in answer.headers
        await nobody.get(PODS, headers={"authorization": "Bearer wrong"})
    probe, refused = await recorder.events()
    assert (probe["user"]["username"], probe["verb"], probe["requestURI"]) == ("system:anonymous", "get", "/livez")
    assert "objectRef" not in probe
    assert refused["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


async def test_a_watch_is_recorded_when_it_begins_and_when_it_ends(recorder: Recorder) -> None:
    stream = Stream(recorder.app, PODS, "watch=1", peer=ADMIN)
    await asyncio.wait_for(stream.started.wait(), 60)
    await stream.disconnect()
    started, complete = await recorder.events()
    assert (started["stage"], started["verb"]) == ("ResponseStarted", "watch")
    assert (complete["stage"], complete["responseStatus"]["code"]) == ("ResponseComplete", 200)
    assert started["auditID"] == complete["auditID"]


async def test_long_bodies_are_omitted_and_annotated(recorder: Recorder, client: httpx.AsyncClient) -> None:
    await client.post(SECRETS, json={"metadata": {"name": "s"}, "stringData": {"password": "x" * 20_000}})
    await client.get(f"{SECRETS}/s")
    for event in await recorder.events():
        assert event["responseStatus"]["code"] < 300
        assert event["annotations"]["audit.k8s.io/truncated"] == "true"
        assert not {"requestObject", "responseObject"} & event.keys()


async def test_annotations_of_admission_are_in_the_event(parts: Parts, tmp_path: Path) -> None:
    """Admission adds annotations to the options of a write, which share those of the request."""
    from federation.apiserver.http.parameters import to_delete_options, to_write_options

    annotations: dict[str, str] = {}
    to_write_options({}, "", [], "CreateOptions", None, annotations).audit_annotations["a"] = "1"
    to_write_options({"dryRun": "All"}, "", [], "CreateOptions", None, annotations).audit_annotations["b"] = "2"
    to_delete_options({}, None, [], None, annotations).audit_annotations["c"] = "3"
    assert annotations == {"a": "1", "b": "2", "c": "3"}


async def test_a_bug_is_recorded_as_a_panic(recorder: Recorder) -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        async def failing() -> Any:
            raise ZeroDivisionError

        scope["state"] = {"peer": Peer("admin", ("system:masters",))}
        await recorder.app(scope, failing, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=broken), base_url="https://api") as client:
        assert (await client.post(SECRETS, json={})).status_code == 500
    (event,) = await recorder.events()
    assert (event["stage"], event["responseStatus"]["code"]) == ("Panic", 500)
