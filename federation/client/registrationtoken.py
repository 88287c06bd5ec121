"""Registration tokens of agents on the host: a new one is a Secret with its hash, for one cluster, with an end.

`fedctl token create` and the web UI make them with the rights of their user; `federation/web/registration.py` uses
them. The secret itself is stored nowhere.
"""

import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta

from federation.api import names
from federation.api.agents import hash_secret
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import Clock, from_rfc3339, to_rfc3339
from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.apimachinery.resources import SECRETS, Object
from federation.client.client import Client
from federation.client.clustersecret import is_pulled


async def create_token(
    host: Client,
    clock: Clock,
    cluster: str,
    lifetime: timedelta,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]] = (),
    *,
    manager: str = "fedctl",
) -> tuple[str, str, str]:
    """Store the hash of a new token, and return its id, its secret and its end; expired tokens are removed.

    ConfigurationError if a cluster of this name is joined in push mode.
    """
    await _check_free(host, cluster)
    await _remove_expired(host, to_rfc3339(clock.now()))
    token_id, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
    expires = to_rfc3339(clock.now() + lifetime)
    values = {
        "cluster": cluster,
        "hash": hash_secret(secret),
        "expires": expires,
        "labels": json.dumps(dict(labels)),
        "taints": json.dumps(list(taints)),
    }
    await host.create(SECRETS, to_secret(token_id, values), field_manager=manager)
    return token_id, secret, expires


async def stored_tokens(host: Client) -> list[Object]:
    """Return the Secrets of all tokens that are stored."""
    found = (await host.list(SECRETS, namespace=names.SYSTEM_NAMESPACE)).items
    return [secret for secret in found if secret.get("type") == names.AGENT_TOKEN_TYPE]


def value_of(secret: Object, key: str) -> str:
    """Return a value of the Secret of a token, "" without it."""
    return base64.b64decode((secret.get("data") or {}).get(key) or "").decode("ascii", errors="replace")


def to_secret(token_id: str, values: Mapping[str, str]) -> Object:
    """Return the Secret of a token; the values are its cluster, hash, expiry, labels and taints."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": names.AGENT_TOKEN_PREFIX + token_id, "namespace": names.SYSTEM_NAMESPACE},
        "type": names.AGENT_TOKEN_TYPE,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


async def _check_free(host: Client, name: str) -> None:
    """Raise ConfigurationError if a cluster of this name is joined in push mode."""
    try:
        cluster = await host.get(FEDERATED_CLUSTERS, name)
    except NotFound:
        return
    if not is_pulled(cluster):
        raise ConfigurationError(f'cluster "{name}" is joined in push mode; run `fedctl unjoin {name}` first')


async def _remove_expired(host: Client, now: str) -> None:
    for secret in await stored_tokens(host):
        expires = value_of(secret, "expires")
        if not expires or from_rfc3339(expires) <= from_rfc3339(now):
            await host.delete(SECRETS, secret["metadata"]["name"], names.SYSTEM_NAMESPACE)
