"""Attack: a tenant scans the host's networks with gates of rollouts, and reads the answers in FederatedRollouts."""

from pathlib import Path
from typing import Any

import httpcore
import pytest

from federation.admission.rolloutgates import gate_causes
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.publicaddresses import is_metadata, is_public, parse_networks
from federation.apimachinery.webhookclient import WebhookClient, WebhookClientOptions
from federation.features.waves.httpgate import HTTPGate
from federation.planning.waves.waverules import HTTPCheck
from federation.runtime.controller import Key
from federation.settings import Settings

INTERNAL = (
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[::ffff:10.0.0.1]",
    "[::10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b::a00:1]",
    "[64:ff9b:1::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]",
    "[2001:0:a9fe:a9fe::1]",
    "[64:ff9b::a83f:8110]",
    "[5f00::1]",
)


def causes(host: str, *networks: str) -> list[str]:
    waves = {"waves": [{"name": "a", "gate": {"http": {"url": f"http://{host}:8080/"}}}]}
    return [found["field"] for found in gate_causes(waves, parse_networks(networks))]


@pytest.mark.parametrize("host", INTERNAL)
async def test_no_gate_reaches_an_address_that_is_not_global(host: str) -> None:
    assert causes(host) == ["spec.rollout.waves[0].gate.http.url"]
    client = WebhookClient(WebhookClientOptions(is_public_only=True))
    response = await client.get(Connection(f"http://{host}:1/"), {}, timeout_s=60)
    await client.close()
    assert response.status == 0
    assert "not allowed" in response.error


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "127.1", "0"])
async def test_other_spellings_of_an_address_are_refused_when_they_are_called(host: str) -> None:
    client = WebhookClient(WebhookClientOptions(is_public_only=True))
    response = await client.get(Connection(f"http://{host}:1/"), {}, timeout_s=60)
    await client.close()
    assert response.status == 0
    assert "not allowed" in response.error or "Invalid IPv4 address" in response.error


METADATA = ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fe80::1%eth0", "fd00:ec2::254"]


@pytest.mark.parametrize("address", [*METADATA, "168.63.129.16", "100.100.100.200"])
async def test_no_call_reaches_a_metadata_service(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Webhooks, Remedies, plugins and metrics may be in any network of the administrator, but not there."""
    sent = []

    class Stream(httpcore.AsyncMockStream):
        def get_extra_info(self, info: str) -> Any:
            return (address, 80) if info == "server_addr" else None

        async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
            sent.append(buffer)

    async def connect(*_: object, **__: object) -> httpcore.AsyncNetworkStream:
        return Stream([b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"])

    monkeypatch.setattr("httpcore.AnyIOBackend.connect_tcp", connect)
    client = WebhookClient()
    response = await client.get(Connection("http://name.example:80/"), {}, timeout_s=60)
    await client.close()
    assert "link-local or metadata address" in response.error
    assert not sent


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1", "fd12::1"])
def test_own_networks_are_no_metadata_services(address: str) -> None:
    assert not is_metadata(address)


@pytest.mark.parametrize("host", ["93.184.215.14", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]", "slo.example.com"])
def test_a_gate_may_ask_a_global_address(host: str) -> None:
    assert causes(host) == []


@pytest.mark.parametrize(
    ("host", "network"),
    [("10.1.2.3", "10.1.0.0/16"), ("[64:ff9b::a01:203]", "10.1.0.0/16"), ("[fd12::1]", "fd12::/16")],
)
def test_the_administrator_allows_networks(host: str, network: str) -> None:
    assert causes(host, network) == []
    assert causes(host, "10.2.0.0/16")


def test_a_malformed_network_names_its_setting(tmp_path: Path) -> None:
    settings = Settings(directory=tmp_path, gate_allowed_networks=("10.1.2.3/8",))
    with pytest.raises(ConfigurationError, match=r"FEDERATION_GATE_ALLOWED_NETWORKS: 10.1.2.3/8 has host bits set"):
        _ = settings.gate_networks


def test_text_that_is_no_address_is_not_judged_as_one() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        is_public("2130706433")


async def test_a_name_of_an_internal_address_tells_nothing() -> None:
    """Not whether a port is open, not the status, not the reason."""
    client = WebhookClient(WebhookClientOptions(is_public_only=True))
    gate = HTTPGate(client, ManualClock())
    problem = await gate.problem(Key("default", "web"), HTTPCheck("http://localhost:1/", 200, 5.0))
    await client.close()
    assert problem == "the gate did not hold"
