"""Registration tokens of agents, and the names of their identities.

A token consists of a public id, which finds its Secret, and a secret, of which only the hash is stored. What a user
passes to `fedctl agent --register` is a bundle: the token with the host's address and CA, so that the agent can trust
the host before it reveals the token.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from federation.api import names
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object

_MARK = "fedagent1."
"""Begins every bundle and says its format, so that secret scanners and readers recognise one."""
REGISTER_PATH = "/agents/v1/register"
MEMBER_PATH = "/agents/v1/member"
CREDENTIALS_PATH = "/agents/v1/credentials"
RENEW_PATH = "/agents/v1/renew"
TUNNEL_PATH = "/agents/v1/tunnel"


@dataclass(frozen=True, slots=True)
class Bundle:
    """The data with which an agent registers."""

    server: str
    """The host's address, or those of its processes with commas between them."""
    ca: str
    cluster: str
    token_id: str
    secret: str = field(repr=False)

    def encode(self) -> str:
        """Return the bundle as one word."""
        values = [self.server, self.ca, self.cluster, self.token_id, self.secret]
        return _MARK + base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> "Bundle":
        """Return the bundle in a word; ConfigurationError if it is none."""
        word = text.strip()
        encoded = word.removeprefix(_MARK)
        try:
            values = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
        except (ValueError, binascii.Error, RecursionError):
            values = None
        is_valid = isinstance(values, list) and len(values) == 5 and all(isinstance(value, str) for value in values)
        if not word.startswith(_MARK) or not is_valid:
            raise ConfigurationError(
                f"--register: not a registration token; it starts with {_MARK} and is printed by: fedctl token create"
            )
        return cls(*values)


def to_servers(text: str) -> list[str]:
    """Return the addresses of a host's processes from a list with commas; ConfigurationError."""
    servers = [each.strip() for each in text.split(",")]
    for server in servers:
        address = urlsplit(server)
        if address.scheme != "https" or not address.hostname:
            raise ConfigurationError(f'--server: "{server}" is not an address; write https://HOST[:PORT]')
    return servers


CONFINED: Final = {names.AGENT_USER_PREFIX: REGISTER_PATH.split("/")[1]}
"""An agent's identity is good for the routes of agents and for nothing else."""


def hash_secret(secret: str) -> str:
    """Return what is stored of a token's secret. The secret is random and long, so that a plain hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_secret(secret: str, stored: str) -> bool:
    """Return whether a secret has the stored hash, in constant time."""
    return hmac.compare_digest(hash_secret(secret).encode(), stored.encode())


def agent_user(uid: str) -> str:
    """Return the user name of the agent of the FederatedCluster with this uid."""
    return names.AGENT_USER_PREFIX + uid


def agent_group(registration: str) -> str:
    """Return the group of an agent that registered with this token id; a later registration replaces it."""
    return names.AGENT_REGISTRATION_PREFIX + registration


def is_agent(user: str, groups: Sequence[str], cluster: Object) -> bool:
    """Return whether the user is the agent that registered last for a FederatedCluster."""
    registration = registration_of(cluster)
    is_registered = bool(registration) and user == agent_user(cluster["metadata"]["uid"])
    return is_registered and agent_group(registration) in groups


def registration_of(cluster: Object) -> str:
    """Return the token id of the last registration of a FederatedCluster's agent, "" if there was none."""
    return (cluster["metadata"].get("annotations") or {}).get(names.AGENT_REGISTRATION) or ""
