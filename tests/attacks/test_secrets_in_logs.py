"""Data of Secrets reaches neither the audit log, nor the server's log at debug level, nor Events, metrics and `fedctl why`.

A real `fedctl serve` records every request and response. Each request below carries a marker in a Secret; some are
refused, so that errors could quote it.
"""

import base64
import contextlib
import json
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.federation import Federation, eventually, fedctl, log_of, start_serve
from tests.support.rest import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api, Refused

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.store.maintenance import file_of, name_of
from federation.client.kubeconfig import load_kubeconfig

PLAIN = "correct-horse-battery"
MARKERS = (PLAIN, base64.b64encode(PLAIN.encode()).decode())
HIDDEN = MARKERS[1]
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"
SECRETS = "/api/v1/namespaces/default/secrets"
LAST_APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"data": {"a": HIDDEN}})}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    directory = tmp_path_factory.mktemp("logs")
    (directory / "policy.yaml").write_text(POLICY)
    arguments = ["--audit-policy-file", str(directory / "policy.yaml"), "--log-level", "debug"]
    with contextlib.closing(start_serve(directory / "state", arguments=arguments)) as federation:
        yield federation


def a_secret(name: str = "s", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **fields}


REQUESTS: dict[str, tuple[str, str, Any, str]] = {
    "created": ("POST", SECRETS, a_secret(data={"a": HIDDEN}), "application/json"),
    "created as text": ("POST", SECRETS, a_secret("t", stringData={"a": PLAIN}), "application/json"),
    "annotated": (
        "POST",
        SECRETS,
        a_secret("u", metadata={"name": "u", "annotations": LAST_APPLIED}),
        "application/json",
    ),
    "dry run": ("POST", f"{SECRETS}?dryRun=All", a_secret("d", data={"a": HIDDEN}), "application/json"),
    "no base64": ("POST", SECRETS, a_secret("b", data={"a": f"{PLAIN}!"}), "application/json"),
    "no mapping": ("POST", SECRETS, a_secret("c", data=PLAIN), "application/json"),
    "a number": ("POST", SECRETS, a_secret("c", data={"a": {PLAIN: 1}}), "application/json"),
    "a key that is not valid": ("POST", SECRETS, a_secret("c", stringData={"é é": PLAIN}), "application/json"),
    "a list": ("POST", SECRETS, a_secret("c", stringData=[PLAIN]), "application/json"),
    "an unknown field": (
        "POST",
        SECRETS,
        a_secret("c", dat={"a": PLAIN}),
        "application/json",
    ),
    "broken JSON": ("POST", SECRETS, b'{"data": {"a": "' + PLAIN.encode() + b'"', "application/json"),
    "broken YAML": ("POST", SECRETS, b"data:\n  a: " + PLAIN.encode() + b"\n b: - [", "application/yaml"),
    "YAML": (
        "POST",
        SECRETS,
        f"apiVersion: v1\nkind: Secret\nmetadata: {{name: y}}\ndata: {{a: {HIDDEN}}}".encode(),
        "application/yaml",
    ),
    "another type": ("POST", SECRETS, a_secret("c", data={"a": HIDDEN}), "text/plain"),
    "the type of dockerconfig": (
        "POST",
        SECRETS,
        a_secret("c", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": PLAIN}),
        "application/json",
    ),
    "replaced": ("PUT", f"{SECRETS}/s", a_secret(data={"a": HIDDEN}), "application/json"),
    "merged": ("PATCH", f"{SECRETS}/s", {"data": {"b": HIDDEN}}, MERGE),
    "merged into a misspelled field": ("PATCH", f"{SECRETS}/s", {"stringdata": {"b": PLAIN}}, MERGE),
    "merged badly": ("PATCH", f"{SECRETS}/s", {"data": {"b": [PLAIN]}}, MERGE),
    "merged strategically": ("PATCH", f"{SECRETS}/s", {"stringData": {"b": PLAIN}}, STRATEGIC),
    "patched": ("PATCH", f"{SECRETS}/s", [{"op": "add", "path": "/data/c", "value": HIDDEN}], JSON_PATCH),
    "tested": ("PATCH", f"{SECRETS}/s", [{"op": "test", "path": "/data/a", "value": PLAIN}], JSON_PATCH),
    "replaced data": ("PATCH", f"{SECRETS}/s", [{"op": "replace", "path": "/data", "value": {"a": PLAIN}}], JSON_PATCH),
    "applied": ("PATCH", f"{SECRETS}/s?fieldManager=x&force=true", a_secret(data={"a": HIDDEN}), APPLY),
    "applied badly": ("PATCH", f"{SECRETS}/s?fieldManager=x", a_secret(data=[PLAIN]), APPLY),
    "read": ("GET", f"{SECRETS}/s", None, ""),
    "listed": ("GET", SECRETS, None, ""),
    "reviewed": (
        "POST",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": PLAIN}},
        "application/json",
    ),
    "sent to another kind": (
        "POST",
        "/api/v1/namespaces/default/pods",
        a_secret(data={"a": HIDDEN}),
        "application/json",
    ),
}


def test_no_log_shows_the_data_of_a_secret(server: Federation, tmp_path: Path) -> None:
    with contextlib.closing(Api(load_kubeconfig(server.directory / "kubeconfig"), "default")) as api:
        for method, target, body, type_ in REQUESTS.values():
            path, _, query = target.partition("?")
            parameters = dict(pair.split("=") for pair in query.split("&") if pair)
            with contextlib.suppress(Refused):
                api.send(method, path, body, type_=type_, **parameters)
        eventually(lambda: api.http.get("/api/v1/namespaces/default/events").status_code, lambda code: code == 200)
        events = api.http.get("/api/v1/events").text
        metrics = api.http.get("/metrics").text
        decisions = fedctl("why", "secret", "s", "--kubeconfig", str(server.directory / "kubeconfig"), check=False)
        audit = server.directory / "audit.log"
        # Deletes come last in the log, so all events before are written when theirs are.
        api.send("DELETE", f"{SECRETS}/s")
        eventually(lambda: '"verb":"delete"' in audit.read_text().replace(" ", ""), bool)
    texts = {
        "the audit log": audit.read_text(),
        "the server's log": log_of(server.directory).read_text(),
        "events": events,
        "metrics": metrics,
        "fedctl why": decisions.stdout + decisions.stderr,
    }
    assert texts["the audit log"].count("RequestResponse") > len(REQUESTS)
    found = [
        f"{name}: …{_around(line)}"
        for name, text in texts.items()
        for line in text.splitlines()
        if any(marker in line for marker in MARKERS)
    ]
    assert not found, "\n".join(found)


def _around(line: str) -> str:
    """Return the part of a line around its first marker."""
    at = min(line.index(marker) for marker in MARKERS if marker in line)
    return line[max(0, at - 300) : at + 60]


@pytest.mark.parametrize("url", [f"postgresql://user:{PLAIN}", f"postgresql://user:{PLAIN}/name", PLAIN])
@pytest.mark.parametrize("read", [name_of, file_of])
def test_an_error_about_the_databases_url_does_not_quote_its_password(url: str, read: Callable[[str], object]) -> None:
    """Without a host, the password stands where a port should be."""
    with pytest.raises(ConfigurationError, match="store url: it does not parse") as raised:
        read(url)
    printed = "".join(traceback.format_exception(raised.value))
    assert PLAIN not in printed
