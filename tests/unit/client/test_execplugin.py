"""Credential plugins: what a program gets to know, and what is made of its answer and its failures."""

import json
import sys
from pathlib import Path

import pytest

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.execplugin import V1, V1BETA1, ExecPlugin
from federation.client.execplugin import run_plugin

THERE = Connection("https://a.example.com", ca_data=b"pem")


def a_plugin(folder: Path, script: str, *args: str, **fields: object) -> ExecPlugin:
    path = folder / "plugin"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{script}\n")
    path.chmod(0o755)
    return ExecPlugin(str(path), args, **fields)  # type: ignore[arg-type]


def answer(version: str = V1, **status: str) -> str:
    return f"print({json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status})!r})"


async def test_a_program_gets_the_cluster_as_data_and_no_variables_of_this_process(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FEDERATION_STORE_URL", "postgresql://user:secret@db")
    script = "json.dump([os.environ.copy(), sys.argv[1:]], open(os.environ['OUT'], 'w'))\n" + answer(token="t")
    env = {"OUT": str(tmp_path / "out")}
    plugin = a_plugin(tmp_path, script, "--one", env=env, provides_cluster_info=True)
    assert (await run_plugin(plugin, THERE, {"clusterName": "x; rm -rf /"})).token == "t"
    environ, args = json.loads((tmp_path / "out").read_text())
    assert args == ["--one"]
    assert not [name for name in environ if name.startswith("FEDERATION_")]
    info = json.loads(environ["KUBERNETES_EXEC_INFO"])
    assert (info["apiVersion"], info["kind"], info["spec"]["interactive"]) == (V1, "ExecCredential", False)
    assert info["spec"]["cluster"] == {
        "server": "https://a.example.com",
        "insecure-skip-tls-verify": False,
        "certificate-authority-data": "cGVt",
        "config": {"clusterName": "x; rm -rf /"},
    }


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("sys.exit('no login')", "ended with code 1: no login"),
        ("print('x' * 2_000_000)", "printed more than"),
        ("print('secret-token')", "did not print JSON"),
        ("print('[]')", "did not print an ExecCredential"),
        (answer(V1BETA1, token="t"), f"did not answer with apiVersion {V1}"),
        (answer(), "neither a token nor a certificate"),
        (answer(clientCertificateData="c"), "neither a token nor a certificate"),
        (answer(token="t", expirationTimestamp="soon"), "expirationTimestamp that is no time"),
        ("time.sleep(60)", "gave no answer within 0.5 s"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_reported_without_its_content(tmp_path, script, expected) -> None:
    with pytest.raises(ConfigurationError, match=expected) as caught:
        await run_plugin(a_plugin(tmp_path, script), THERE, timeout_s=0.5 if "sleep" in script else 30)
    assert "secret-token" not in str(caught.value)


async def test_a_program_that_does_not_exist_is_reported() -> None:
    with pytest.raises(ConfigurationError, match="/no/such cannot be started: No such file"):
        await run_plugin(ExecPlugin("/no/such"), THERE)
