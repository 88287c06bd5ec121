"""A credential plugin of client.authentication.k8s.io, as kubeconfigs describe it; `client` runs it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.apimachinery.errors import ConfigurationError

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A credential plugin, as in `users[].user.exec` of a kubeconfig."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = V1
    provides_cluster_info: bool = False
    directory: str = ""
    """Where a command with a relative path is."""


def to_plugin(exec_config: Mapping[str, Any], directory: str = "") -> ExecPlugin:
    """Return the plugin of an `exec` section; ConfigurationError names the field that is wrong."""
    version = str(exec_config.get("apiVersion") or V1)
    if version not in (V1, V1BETA1):
        raise ConfigurationError(f"apiVersion: {version!r} is neither {V1} nor {V1BETA1}")
    args, env = exec_config.get("args") or [], exec_config.get("env") or []
    if not isinstance(args, list) or not isinstance(env, list):
        raise ConfigurationError("args and env must be lists")
    if not all(isinstance(each, dict) and each.get("name") for each in env):
        raise ConfigurationError("env: each entry needs a name and a value")
    return ExecPlugin(
        str(exec_config["command"]),
        tuple(map(str, args)),
        {str(each["name"]): str(each.get("value") or "") for each in env},
        version,
        bool(exec_config.get("provideClusterInfo")),
        directory,
    )
