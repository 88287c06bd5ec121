"""Kubeconfig files and in-cluster configuration: file and context in, `Connection` out.

Every problem is a one-line ConfigurationError with file, field and remedy. This is the only module that imports
`kubernetes`, and only for users whose credentials come from an identity provider: that package costs a second and
60 MB of memory. Credential files are read once, here; the session reads token files again, because tokens rotate.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from federation.apimachinery.connection import Connection, CredentialPlugin
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.execplugin import to_plugin
from federation.apimachinery.yamltext import TooDeepError, load_yaml
from federation.client.execplugin import run_plugin

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_kubeconfig(path: Path | str, context: str = "") -> Connection:
    """Return the connection of a context, "" for the current one; ConfigurationError if it is unusable."""
    return _Kubeconfig(Path(path)).to_connection(context)


def context_names(path: Path | str) -> list[str]:
    """Return the names of the contexts in a file; ConfigurationError if it cannot be read."""
    return _Kubeconfig(Path(path)).context_names()


def in_cluster(environ: Mapping[str, str] | None = None, folder: Path = SERVICE_ACCOUNT_FOLDER) -> Connection:
    """Return a pod's connection to its own cluster, as its service account; ConfigurationError outside a cluster."""
    environ = os.environ if environ is None else environ
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigurationError(
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; outside of a cluster give a kubeconfig"
        )
    token, ca, namespace = folder / "token", folder / "ca.crt", folder / "namespace"
    _read(token, token, "the service account's token")
    connection = Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca_data=_read(ca, ca, "the cluster's CA"),
        token_file=str(token),
        namespace=namespace.read_text().strip() if namespace.is_file() else "",
    )
    connection.to_tls()
    return connection


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials from a plugin: the connection that uses them, and their expiry (None if unknown)."""

    connection: Connection
    expires: datetime | None


async def fetch_credentials(connection: Connection) -> Credentials:
    """Run the connection's credential plugin and return a connection with its credentials; ConfigurationError."""
    plugin = connection.plugin
    if plugin is None:
        return Credentials(connection, None)
    if plugin.kind == "exec":
        return await _run_exec(connection, plugin)
    from kubernetes.aio.config import ConfigException  # noqa: PLC0415  # see the module's docstring

    try:
        return await _run_auth_provider(connection, plugin)
    except (ConfigException, OSError, ValueError, KeyError, TypeError) as problem:
        raise ConfigurationError(f"credentials for {connection.server}: {plugin.kind}: {problem}") from problem


async def _run_exec(connection: Connection, plugin: CredentialPlugin) -> Credentials:
    try:
        answer = await run_plugin(to_plugin(plugin.kubeconfig["exec"], plugin.directory), connection)
    except ConfigurationError as problem:
        raise ConfigurationError(f"credentials for {connection.server}: users[].user.exec: {problem}") from problem
    found = replace(connection, token=answer.token, plugin=None)
    if answer.certificate:
        found = replace(found, client_cert_data=answer.certificate, client_key_data=answer.key)
    return Credentials(found, answer.expires)


async def _run_auth_provider(connection: Connection, plugin: CredentialPlugin) -> Credentials:
    from kubernetes.aio.client import Configuration  # noqa: PLC0415  # see the module's docstring
    from kubernetes.aio.config.kube_config import KubeConfigLoader  # noqa: PLC0415

    configuration = Configuration()
    loader = KubeConfigLoader(dict(plugin.kubeconfig), plugin.context, config_base_path=plugin.directory)
    await loader.load_and_set(configuration)
    bearer = str(configuration.api_key.get("BearerToken") or "")
    if not bearer:
        raise ConfigurationError(f"users[].user.auth-provider: gave no token for {connection.server}")
    return Credentials(replace(connection, token=bearer.removeprefix("Bearer "), plugin=None), None)


def _parse(text: str) -> Any:
    try:
        return load_yaml(text)
    except TooDeepError:
        raise
    except yaml.YAMLError:
        return yaml.safe_load(text)  # ten times slower; its error has the right line at the end of a file, too


class _Kubeconfig:
    """One parsed file; its error messages start with the path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        text = _read(path, path, "the kubeconfig").decode("utf-8", errors="replace")
        try:
            document = _parse(text)
        except yaml.YAMLError as problem:
            mark = getattr(problem, "problem_mark", None)
            where = f" in line {mark.line + 1}" if mark is not None else ""
            raise self._wrong("", f"is not YAML{where}; write it again with `kubectl config view --raw`") from problem
        if not isinstance(document, dict) or document.get("kind", "Config") != "Config":
            raise self._wrong("", "is not a kubeconfig (a mapping with kind: Config)")
        self._document: dict[str, Any] = document

    def context_names(self) -> list[str]:
        contexts = self._document.get("contexts")
        entries = contexts if isinstance(contexts, list) else []
        return [str(entry["name"]) for entry in entries if isinstance(entry, dict) and "name" in entry]

    def to_connection(self, wanted: str) -> Connection:
        name = wanted or str(self._document.get("current-context") or "")
        if not name:
            raise self._wrong("current-context", f"is not set; choose a context: {self._names('contexts')}")
        context = self._entry("contexts", name, "context")
        cluster_name = str(context.get("cluster") or "")
        if not cluster_name:
            raise self._wrong(f"contexts[{name}].context.cluster", "is not set")
        cluster = self._entry("clusters", cluster_name, "cluster")
        field = f"clusters[{cluster_name}].cluster"
        connection = Connection(
            server=self._server(cluster, field),
            ca_data=self._data(cluster, "certificate-authority", field),
            insecure=bool(cluster.get("insecure-skip-tls-verify")),
            tls_server_name=str(cluster.get("tls-server-name") or ""),
            proxy_url=str(cluster.get("proxy-url") or ""),
            namespace=str(context.get("namespace") or ""),
        )
        user_name = str(context.get("user") or "")
        if user_name:
            connection = self._with_user(connection, self._entry("users", user_name, "user"), user_name, name)
        try:
            connection.to_tls()
        except ConfigurationError as problem:
            raise self._wrong(f"contexts[{name}]", str(problem)) from problem
        return connection

    def _with_user(self, connection: Connection, user: dict[str, Any], name: str, context: str) -> Connection:
        field = f"users[{name}].user"
        certificate = self._data(user, "client-certificate", field)
        key = self._data(user, "client-key", field)
        if bool(certificate) != bool(key):
            lacking = "client-key" if certificate else "client-certificate"
            raise self._wrong(f"{field}.{lacking}", "is not set; a client certificate needs its key, and a key its one")
        token, token_file = str(user.get("token") or ""), str(user.get("tokenFile") or "")
        if token_file:
            # As in client-go, the file wins. It is read now to report a missing file now.
            path = self._resolve(token_file)
            token = self._read(path, f"{field}.tokenFile").decode("utf-8", errors="replace").strip()
            token_file = str(path)
        return replace(
            connection,
            client_cert_data=certificate,
            client_key_data=key,
            token=token,
            token_file=token_file,
            username=str(user.get("username") or ""),
            password=str(user.get("password") or ""),
            impersonate_user=str(user.get("as") or ""),
            impersonate_groups=tuple(map(str, user.get("as-groups") or ())),
            plugin=self._plugin(user, field, context),
        )

    def _plugin(self, user: dict[str, Any], field: str, context: str) -> CredentialPlugin | None:
        directory = str(self._path.parent)
        if user.get("exec"):
            if not isinstance(user["exec"], dict) or not user["exec"].get("command"):
                raise self._wrong(f"{field}.exec.command", "is not set")
            return CredentialPlugin("exec", {"exec": user["exec"]}, context, directory)
        if user.get("auth-provider"):
            return CredentialPlugin("auth-provider", self._document, context, directory)
        return None

    def _server(self, cluster: dict[str, Any], field: str) -> str:
        server = str(cluster.get("server") or "").rstrip("/")
        if not server:
            raise self._wrong(f"{field}.server", "is not set; give the API server's address, https://HOST:PORT")
        try:
            parts = urlsplit(server)
            is_good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            is_good = False
        if not is_good:
            raise self._wrong(f"{field}.server", f"{server!r} is no address; write https://HOST:PORT")
        return server

    def _entry(self, section: str, name: str, inner: str) -> dict[str, Any]:
        listed = self._document.get(section) or []
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict) and entry.get("name") == name:
                found = entry.get(inner) or {}
                if not isinstance(found, dict):
                    raise self._wrong(f"{section}[{name}].{inner}", "is no mapping")
                return found
        raise self._wrong(section, f'has no "{name}"; there are: {self._names(section)}')

    def _names(self, section: str) -> str:
        listed = self._document.get(section) or []
        found = [str(entry.get("name")) for entry in listed if isinstance(entry, dict)] if listed else []
        return ", ".join(sorted(found)) or "none"

    def _data(self, section: dict[str, Any], name: str, field: str) -> bytes:
        """Return the inline data, or the content of the file in field `name`; inline data wins, as in client-go."""
        inline = section.get(f"{name}-data")
        if inline:
            try:
                return base64.b64decode(str(inline), validate=True)
            except (binascii.Error, ValueError) as problem:
                raise self._wrong(f"{field}.{name}-data", "is not base64") from problem
        if section.get(name):
            return self._read(self._resolve(str(section[name])), f"{field}.{name}")
        return b""

    def _resolve(self, text: str) -> Path:
        path = Path(text).expanduser()
        return path if path.is_absolute() else self._path.parent / path

    def _read(self, path: Path, field: str) -> bytes:
        return _read(path, self._path, field)

    def _wrong(self, field: str, problem: str) -> ConfigurationError:
        where = f"{self._path}: {field}" if field else str(self._path)
        return ConfigurationError(f"{where}: {problem}" if field else f"{where} {problem}")


def _read(path: Path, file: Path, field: str) -> bytes:
    """Return a file's content; ConfigurationError names the file, the field that refers to it, and the remedy."""
    title = str(path) if path == file else f"{file}: {field}: {path}"
    try:
        return path.expanduser().read_bytes()
    except FileNotFoundError as problem:
        raise ConfigurationError(f"{title} does not exist; give the path of {_of(path, file, field)}") from problem
    except IsADirectoryError as problem:
        raise ConfigurationError(f"{title} is a folder; give the path of {_of(path, file, field)}") from problem
    except PermissionError as problem:
        raise ConfigurationError(f"{title} is not readable; change its owner or mode") from problem
    except OSError as problem:
        raise ConfigurationError(f"{title} cannot be read: {problem.strerror}") from problem


def _of(path: Path, file: Path, field: str) -> str:
    return field if path == file else "a file"
