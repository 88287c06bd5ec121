"""A malformed file in the state directory, or one that an option names: one clear line at the start, no 500 later."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.federation import Federation, fedctl, log_of, start_serve
from tests.support.rest import Api, Refused

from federation.apimachinery.connection import Connection
from federation.apiserver.auth.tokenfile import TokenFile
from federation.client.kubeconfig import load_kubeconfig


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory that a control plane has used."""
    directory = tmp_path_factory.mktemp("used") / "state"
    with contextlib.closing(start_serve(directory)):
        pass
    return directory


NOISE = b"\x00\xff{ not a file of ours"
FILES = {
    "version.json": b"[]",
    "pki/ca.crt": NOISE,
    "pki/ca.key": NOISE,
    "pki/service-account.key": NOISE,
    "pki/tokens.json": b'{"tokens": []}',
    "state.db": NOISE * 400,
}


@pytest.mark.parametrize("name", FILES)
def test_a_malformed_file_refuses_the_start_with_one_line_that_names_it(used: Path, tmp_path: Path, name: str) -> None:
    directory = tmp_path / "state"
    shutil.copytree(used, directory)
    (directory / name).write_bytes(FILES[name])
    done = fedctl("serve", "--dir", str(directory), "--port", "0", check=False)
    assert_one_line(done.returncode, done.stderr, str(directory / name))


OPTIONS = {"--audit-policy-file": "rules: 5", "--encryption-key-file": "no key", "--oidc-ca-file": "no certificate"}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_malformed_file_of_an_option_refuses_the_start_with_one_line(tmp_path: Path, option: str) -> None:
    file = tmp_path / "given"
    file.write_text(OPTIONS[option])
    file.chmod(0o600)
    more = ["--oidc-issuer-url", "https://issuer.example", "--oidc-client-id", "a"] if "oidc" in option else []
    done = fedctl("serve", "--dir", str(tmp_path / "state"), "--port", "0", option, str(file), *more, check=False)
    assert_one_line(done.returncode, done.stderr, str(file))


def assert_one_line(code: int, text: str, file: str) -> None:
    lines = [line for line in text.splitlines() if not line.startswith("20")]  # log lines have their time first
    assert code != 0
    assert "Traceback" not in text
    assert len(lines) == 1, text
    assert file in lines[0]


@pytest.fixture(scope="module")
def server(used: Path) -> Iterator[Federation]:
    with contextlib.closing(start_serve(used)) as federation:
        yield federation


def test_malformed_tokens_beside_a_running_server_are_one_log_line(server: Federation) -> None:
    path = server.directory / "pki" / "tokens.json"
    token = TokenFile(path).add(user="ci", groups=["system:masters"])
    connection = load_kubeconfig(server.directory / "kubeconfig")
    admin = Api(connection, "default")

    def ask(given: str) -> int:
        return admin.http.get("/api", headers={"authorization": f"Bearer {given}"}).status_code

    with contextlib.closing(Api(connection_without_certificate(connection, token), "default")) as user:
        user.list("configmaps")
        path.write_text("[]")
        os.utime(path, ns=(1, 1))
        user.list("configmaps")
        for unknown in ("other", "another"):
            with contextlib.closing(Api(connection_without_certificate(connection, unknown), "default")) as nobody:
                with pytest.raises(Refused) as refusal:
                    nobody.list("configmaps")
                assert refusal.value.code == 401
    assert ask(token) == 200
    admin.close()
    log = log_of(server.directory).read_text()
    assert log.count("tokens.json is not a token file") == 1
    assert "Traceback" not in log
    path.unlink()


def connection_without_certificate(connection: Connection, token: str) -> Connection:
    return replace(connection, client_cert_data=b"", client_key_data=b"", token=token)


TIMEOUTS = {
    "1ns": (200, 504),
    "0": (200,),
    "0s": (200,),
    "-1s": (200,),
    "2562047h": (200,),
    "9999999h": (400,),
    "soon": (400,),
    "10": (400,),
    "1" * 5000 + "x": (400,),
    "1.5.5s": (400,),
    "\u0663s": (400,),
    "": (200,),
}


def test_every_timeout_is_answered_as_by_kubernetes(server: Federation) -> None:
    with contextlib.closing(Api(load_kubeconfig(server.directory / "kubeconfig"), "default")) as api:
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "t-"}}
        for text, codes in TIMEOUTS.items():
            for method, body in (("GET", None), ("POST", obj), ("DELETE", None)):
                path = api.url("configmaps") + ("/none" if method == "DELETE" else "")
                answer = api.http.request(method, path, params={"timeout": text}, json=body)
                also = {"POST": (201,), "DELETE": (404,)}.get(method, ())
                assert answer.status_code in codes + (also if 200 in codes else ()), (method, text[:20], answer.text)
                assert answer.json()["kind"] in ("Status", "ConfigMap", "ConfigMapList")
        for _ in range(50):  # the deadline passes at another place each time
            for micros in (1, 50, 200, 500):
                answer = api.http.post(api.url("configmaps"), params={"timeout": f"{micros}us"}, json=obj)
                assert answer.status_code in (201, 504), answer.text
    assert "Traceback" not in log_of(server.directory).read_text()
