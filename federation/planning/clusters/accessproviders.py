"""The administrator's list of providers: who gives credentials for the clusters of ClusterProfiles, and where they go.

The list is the configuration file of the ClusterProfile API's plugin protocol, with one more field per provider,
`servers`. A profile chooses a provider by name. It adds no command, argument or variable, and it names no server that
the list does not have: credentials would be sent there. Pure.

Reference: docs/reference/clusterprofiles.md#providers
Decision: docs/decisions/0158-profiles-choose-programs-of-a-list.md
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.execplugin import ExecPlugin, to_plugin

_HOST = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\*|\[[0-9a-f:.]+\]")
_PLAIN = re.compile(r"https://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z.-]+)(:\d+)?(/[0-9A-Za-z._~/-]*)?")
"""Addresses that every parser of URLs reads in the same way."""
_HTTPS_PORT = 443
_IGNORE = "Ignore"
_PROVIDERS_MAX = 100


class ServerPattern(NamedTuple):
    """A host, `*.` and the end of hosts, or `*`; and a port, None for any."""

    host: str
    port: int | None

    def matches(self, server: str) -> bool:
        """Return whether credentials may be sent to a server's URL."""
        try:
            parts = urlsplit(server)
            host, port = parts.hostname or "", parts.port or _HTTPS_PORT
        except ValueError:
            return False
        if not _PLAIN.fullmatch(server):
            return False
        if self.port is not None and port != self.port:
            return False
        end = self.host.removeprefix("*")
        return host == self.host or (end != self.host and host.endswith(end) and host != end.lstrip("."))


class Provider(NamedTuple):
    """A provider of the list."""

    plugin: ExecPlugin
    servers: tuple[ServerPattern, ...]

    def serves(self, server: str) -> bool:
        """Return whether its credentials may be sent to a server's URL."""
        return any(pattern.matches(server) for pattern in self.servers)


Providers = Mapping[str, Provider]
NO_PROVIDERS: Providers = MappingProxyType({})


class _Entry(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: str
    exec_config: dict[str, Any]
    servers: list[str]
    profile_sourced_CLI_args_policy: str = msgspec.field(default=_IGNORE, name="profileSourcedCLIArgsPolicy")  # noqa: N815  # its name on the wire
    profile_sourced_env_vars_policy: str = msgspec.field(default=_IGNORE, name="profileSourcedEnvVarsPolicy")


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    providers: list[_Entry]


def parse_providers(document: Any, *, setting: str) -> Providers:
    """Return the providers by name in their order; ConfigurationError names the setting and the field."""
    try:
        entries = msgspec.convert(document, _Document).providers
    except msgspec.ValidationError as problem:
        raise ConfigurationError(f"{setting}: {problem}") from problem
    if len(entries) > _PROVIDERS_MAX:
        raise ConfigurationError(f"{setting}: more than {_PROVIDERS_MAX} providers")
    found: dict[str, Provider] = {}
    for index, entry in enumerate(entries):
        field = f"{setting}: providers[{index}]"
        if not entry.name or entry.name in found:
            raise ConfigurationError(f"{field}.name: give each provider a name of its own")
        policies = (entry.profile_sourced_CLI_args_policy, entry.profile_sourced_env_vars_policy)
        if set(policies) != {_IGNORE}:
            raise ConfigurationError(
                f"{field}: who may write ClusterProfiles must not choose arguments or variables of programs that run"
                f" here; leave profileSourcedCLIArgsPolicy and profileSourcedEnvVarsPolicy out, or set {_IGNORE}"
            )
        found[entry.name] = Provider(_plugin(entry.exec_config, field), _patterns(entry.servers, field))
    return found


def _plugin(exec_config: Mapping[str, Any], field: str) -> ExecPlugin:
    command = exec_config.get("command")
    if not isinstance(command, str) or not command.startswith("/"):
        raise ConfigurationError(f"{field}.execConfig.command: give the absolute path of the program")
    try:
        return to_plugin(exec_config)
    except ConfigurationError as problem:
        raise ConfigurationError(f"{field}.execConfig.{problem}") from problem


def _patterns(servers: list[str], field: str) -> tuple[ServerPattern, ...]:
    if not servers:
        raise ConfigurationError(
            f"{field}.servers: name the servers that may get the credentials, as https://HOST:PORT"
        )
    found = []
    for index, text in enumerate(servers):
        scheme, _, rest = text.partition("://")
        host, colon, port = rest.rpartition(":") if re.search(r":(\d+|\*)$", rest) else (rest, "", "")
        if scheme != "https" or not _HOST.fullmatch(host.lower()):
            raise ConfigurationError(
                f"{field}.servers[{index}]: {text!r} is no https://HOST[:PORT]; HOST may begin with `*.`, PORT may be *"
            )
        number = None if port == "*" else int(port) if colon else _HTTPS_PORT
        found.append(ServerPattern(host.lower().strip("[]"), number))
    return tuple(found)
