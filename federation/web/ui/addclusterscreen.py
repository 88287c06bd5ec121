"""Add a cluster: a registration token, the one command for the cluster, and its progress until it is ready.

The token is made with the rights of the user, is shown once and stored nowhere; its hash is (`registrationtoken.py`).
The agent that the command starts connects to the host, so that the cluster may be behind NAT or a firewall.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from federation.api import names
from federation.api.agents import Bundle, to_servers
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions, nameformats
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import CONFIGMAPS, SECRETS
from federation.client.registrationtoken import create_token
from federation.web.ui.actions.action import Form, required
from federation.web.ui.actions.objectactions import parse_labels
from federation.web.ui.screen import Collection, Page, Screen
from federation.web.ui.usertransport import client_of

PATH = "/ui/addcluster"
LIFETIMES = (("3600", "1 hour"), ("86400", "1 day"), ("604800", "7 days"))
_PUBLIC, _ROOT_CA = "kube-public", "kube-root-ca.crt"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a cluster's way into the federation; `tone` is "good", "busy", "bad" or "unknown"."""

    tone: str
    title: str
    text: str = ""


def steps_of(cluster: Mapping[str, Any] | None) -> list[Step]:
    """Return how far a cluster has come; None for one that has not registered."""
    if cluster is None:
        return [
            Step("busy", "Waits for the agent", "Run the command in the cluster."),
            Step("unknown", "Joined"),
            Step("unknown", "Ready"),
        ]
    found = (cluster.get("status") or {}).get("conditions")
    steps = [Step("good", "The agent has registered")]
    for type_, words in ((names.CLUSTER_JOINED, "Joined"), (names.CLUSTER_READY, "Ready")):
        condition = conditions.find(found, type_)
        if condition is None:
            steps.append(Step("busy" if steps[-1].tone == "good" else "unknown", words))
        elif condition.get("status") == "True":
            steps.append(Step("good", words))
        else:
            text = str(condition.get("message") or condition.get("reason") or "")
            steps.append(Step("busy" if steps[-1].tone == "good" else "unknown", words, text))
    return steps


async def _load(page: Page) -> Mapping[str, Any]:
    name = page.query.get("cluster", "")
    if nameformats.dns1123_subdomain(name):
        name = ""
    cluster = await page.get_optional(f"{FEDERATED_CLUSTERS.path()}/{name}", None) if name else None
    steps = steps_of(cluster)
    return {
        "name": name,
        "steps": steps if name else (),
        "is_ready": all(step.tone == "good" for step in steps),
        "href": f"/ui/fleet/{quote(name, safe='')}",
        "is_allowed": await page.may("create", SECRETS, names.SYSTEM_NAMESPACE),
        "lifetimes": LIFETIMES,
        "form": {"server": page.api.origin},
        "token": "",
    }


async def _act(page: Page, form: Form) -> Mapping[str, Any]:
    if not page.takes_agents:
        raise ConfigurationError("Agents cannot register here; run `fedctl join NAME --kubeconfig FILE`.")
    name = required(form, "name", "Name")
    if problems := nameformats.dns1123_subdomain(name):
        raise ConfigurationError(f"Name: {name[:100]!r}: {problems[0]}")
    lifetime = form.get("lifetime", "")
    if lifetime not in dict(LIFETIMES):
        raise ConfigurationError(f"Valid for: {lifetime[:50]!r} is not one of those offered")
    try:
        server = ",".join(to_servers(required(form, "server", "Address")))
    except ConfigurationError as error:
        raise ConfigurationError(f"Address{str(error).removeprefix('--server')}") from error
    labels = parse_labels(form.get("labels", "").replace(",", "\n"))
    ca = await page.api.get(CONFIGMAPS.path(_PUBLIC, _ROOT_CA))
    host, clock = client_of(page.api), SystemClock()
    token_id, secret, expires = await create_token(
        host, clock, name, timedelta(seconds=int(lifetime)), labels, manager="federation-ui"
    )
    bundle = Bundle(server, str((ca.get("data") or {}).get("ca.crt") or ""), name, token_id, secret)
    cluster = await page.get_optional(f"{FEDERATED_CLUSTERS.path()}/{name}", None)
    return {
        "name": name,
        "steps": steps_of(cluster),
        "is_ready": False,
        "href": f"/ui/fleet/{quote(name, safe='')}",
        "token": bundle.encode(),
        "expires": expires,
    }


def _watched(page: Page) -> Sequence[Collection]:
    name = page.query.get("cluster", "")
    if not name or nameformats.dns1123_subdomain(name):
        return [(FEDERATED_CLUSTERS.path(), {})]
    return [(FEDERATED_CLUSTERS.path(), {"fieldSelector": f"metadata.name={name}"})]


SCREEN = Screen(
    PATH, "Add a cluster", "addcluster.html", _load, _watched, is_listed=False, within="/ui/fleet", act=_act
)
