"""Conformance area: watches over WebSocket, as dashboards in browsers use them."""

import base64
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from tests.conformance.apiserver.objects import a_config_map
from tests.support.rest import Api, eventually
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Event, RejectConnection, RejectData, Request, TextMessage

WAIT_S = 20.0


class Socket:
    """A WebSocket client on a connection that is open already."""

    def __init__(self, connection: socket.socket, api: Api, path: str, subprotocols: list[str], *, sends_token: bool):
        self._connection = connection
        self._protocol = WSConnection(ConnectionType.CLIENT)
        host = str(api.http.base_url.host)
        headers = [(b"origin", f"https://{host}".encode())]
        if api.connection.token and sends_token:
            headers.append((b"authorization", f"Bearer {api.connection.token}".encode()))
        self.send(Request(host=host, target=path, subprotocols=subprotocols, extra_headers=headers))

    def send(self, event: Event) -> None:
        self._connection.sendall(self._protocol.send(event))

    def events(self) -> Iterator[Any]:
        """Yield the events from the server until it closes the connection."""
        while True:
            data = self._connection.recv(65536)
            self._protocol.receive_data(data or None)
            for event in self._protocol.events():
                yield event
                if isinstance(event, CloseConnection):
                    return
            if not data:
                return


@contextmanager
def opened(api: Api, path: str, subprotocols: list[str] | None = None, *, sends_token: bool = True) -> Iterator[Socket]:
    url = api.http.base_url
    context = api.connection.to_tls()
    with socket.create_connection((url.host, url.port), timeout=WAIT_S) as plain:
        connection = context.wrap_socket(plain, server_hostname=url.host) if context is not None else plain
        with connection:
            yield Socket(connection, api, path, subprotocols or [], sends_token=sends_token)


def watch_path(api: Api, **query: str) -> str:
    given = "&".join(f"{name}={value}" for name, value in {"watch": "true", **query}.items())
    return f"{api.url('configmaps')}?{given}"


@pytest.mark.every_store
def test_each_event_is_one_text_frame(api: Api) -> None:
    with opened(api, watch_path(api, fieldSelector="metadata.name=cm")) as client:
        events = client.events()
        assert isinstance(next(events), AcceptConnection)
        api.create("configmaps", a_config_map())
        api.patch("configmaps", "cm", {"data": {"k": "é"}})
        api.delete("configmaps", "cm")
        found = [next(events) for _ in range(3)]
    assert all(isinstance(event, TextMessage) and event.message_finished for event in found)
    changes = [orjson.loads(event.data) for event in found]
    assert [event["type"] for event in changes] == ["ADDED", "MODIFIED", "DELETED"]
    assert changes[1]["object"]["data"] == {"k": "é"}


def test_a_watch_ends_with_a_close_frame(api: Api) -> None:
    path = watch_path(api, timeoutSeconds="1", fieldSelector="metadata.name=none")
    with opened(api, path) as client:
        first, *_, last = client.events()
    assert isinstance(first, AcceptConnection)
    assert isinstance(last, CloseConnection)


def test_a_refused_watch_is_an_ordinary_response(api: Api) -> None:
    with opened(api, f"{api.url('nothings')}?watch=true") as client:
        events = client.events()
        rejected = next(events)
        assert isinstance(rejected, RejectConnection)
        assert rejected.status_code == 404


def test_a_list_is_an_ordinary_response(api: Api) -> None:
    api.create("configmaps", a_config_map())
    with opened(api, f"{api.url('configmaps')}?limit=5") as client:
        events = client.events()
        rejected = next(events)
        assert isinstance(rejected, RejectConnection)
        assert rejected.status_code == 200
        body = b""
        for event in events:
            assert isinstance(event, RejectData)
            body += event.data
            if event.body_finished:
                break
    assert b'"cm"' in body


@pytest.mark.parametrize("is_valid", [True, False])
def test_a_token_may_be_a_subprotocol(api: Api, nobody: Api, *, is_valid: bool) -> None:
    api.create("roles", {"metadata": {"name": "r"}, "rules": [RULE]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    subject = {"kind": "ServiceAccount", "name": "nobody", "namespace": api.namespace}
    api.create("rolebindings", {"metadata": {"name": "r"}, "roleRef": reference, "subjects": [subject]})
    attributes = {"verb": "watch", "resource": "configmaps", "namespace": api.namespace}
    review = {"spec": {"resourceAttributes": attributes}}
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    eventually(lambda: nobody.send("POST", reviews, review).json()["status"]["allowed"])
    token = nobody.connection.token if is_valid else base64.b64encode(os.urandom(20)).decode()
    encoded = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    subprotocols = [f"base64url.bearer.authorization.k8s.io.{encoded}", "json.k8s.io"]
    with opened(nobody, watch_path(api), subprotocols, sends_token=False) as client:
        answer = next(client.events())
    if is_valid:
        assert isinstance(answer, AcceptConnection)
        assert answer.subprotocol == "json.k8s.io"
    else:
        assert isinstance(answer, RejectConnection)
        assert answer.status_code == 401


RULE = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"]}
