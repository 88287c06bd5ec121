"""Run a credential plugin of client.authentication.k8s.io: a program that prints credentials for one server.

The program, its arguments and its variables come from whoever operates this process: the owner of a kubeconfig or the
administrator. What is known about the server is passed as data in KUBERNETES_EXEC_INFO, as client-go does. The answer
is limited in size and time, and no error message quotes it.
"""

import asyncio
import base64
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import orjson

from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.execplugin import ExecPlugin
from federation.apimachinery.resources import Object

_TIMEOUT_S = 60.0
_ANSWER_BYTES_MAX = 1024 * 1024
_REASON_LENGTH_MAX = 300
_OWN_VARIABLES = "FEDERATION_"
"""Variables of this process can hold the password of its database; plugins do not get them."""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """The answer of a plugin; "" and b"" mean absent, no expiry means unknown."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    expires: datetime | None = None


async def run_plugin(
    plugin: ExecPlugin, connection: Connection, config: Object | None = None, *, timeout_s: float = _TIMEOUT_S
) -> ExecCredential:
    """Run the program and return its credentials for a server; ConfigurationError says why there are none.

    `config` is passed on beside the server if the plugin gets that. The program is killed after `timeout_s`.
    """
    command = plugin.command
    if os.sep in command and not Path(command).is_absolute():
        command = str(Path(plugin.directory, command))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)}
    environ = {**inherited, **plugin.env, "KUBERNETES_EXEC_INFO": _exec_info(plugin, connection, config)}
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *plugin.args,
            env=environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as problem:
        raise ConfigurationError(f"{plugin.command} cannot be started: {problem.strerror}") from problem
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(timeout_s):
            answer, complaint = await asyncio.gather(_read(process.stdout), _read(process.stderr))
            code = await process.wait()
    except TimeoutError:
        raise ConfigurationError(f"{plugin.command} gave no answer within {timeout_s:g} s") from None
    except ValueError as problem:
        raise ConfigurationError(f"{plugin.command} printed more than {_ANSWER_BYTES_MAX} bytes") from problem
    finally:
        # It kills the program and closes the pipes: `wait` needs their end, which a full buffer or a child would hold.
        process._transport.close()  # type: ignore[attr-defined]
        await process.wait()
    if code:
        reason = complaint.decode("utf-8", errors="replace").strip()[-_REASON_LENGTH_MAX:]
        raise ConfigurationError(f"{plugin.command} ended with code {code}: {reason or 'without a message'}")
    return _to_credential(plugin, answer)


async def _read(stream: asyncio.StreamReader) -> bytes:
    """Return all that is printed; ValueError if that is too long."""
    found = bytearray()
    while part := await stream.read(65536):
        found += part
        if len(found) > _ANSWER_BYTES_MAX:
            raise ValueError("too long")
    return bytes(found)


def _exec_info(plugin: ExecPlugin, connection: Connection, config: Object | None) -> str:
    spec: Object = {"interactive": False}
    if plugin.provides_cluster_info:
        spec["cluster"] = {"server": connection.server, "insecure-skip-tls-verify": connection.insecure}
        if connection.ca_data:
            spec["cluster"]["certificate-authority-data"] = base64.b64encode(connection.ca_data).decode()
        if config is not None:
            spec["cluster"]["config"] = config
    return orjson.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _to_credential(plugin: ExecPlugin, answer: bytes) -> ExecCredential:
    try:
        document = orjson.loads(answer)
    except ValueError:
        raise ConfigurationError(f"{plugin.command} did not print JSON") from None
    if not isinstance(document, dict) or document.get("kind") != "ExecCredential":
        raise ConfigurationError(f"{plugin.command} did not print an ExecCredential")
    if document.get("apiVersion") != plugin.api_version:
        raise ConfigurationError(f"{plugin.command} did not answer with apiVersion {plugin.api_version}")
    status = document.get("status")
    if not isinstance(status, dict):
        raise ConfigurationError(f"{plugin.command} gave no status")
    token = str(status.get("token") or "")
    certificate = str(status.get("clientCertificateData") or "").encode()
    key = str(status.get("clientKeyData") or "").encode()
    if not token and not (certificate and key):
        raise ConfigurationError(f"{plugin.command} gave neither a token nor a certificate with its key")
    stamp = status.get("expirationTimestamp")
    try:
        expires = from_rfc3339(str(stamp)) if stamp else None
    except ValueError:
        raise ConfigurationError(f"{plugin.command} gave an expirationTimestamp that is no time") from None
    return ExecCredential(token, certificate, key, expires)
