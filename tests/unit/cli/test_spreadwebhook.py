"""The addresses of `fedctl spread-webhook`."""

from pathlib import Path

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.cli.spreadwebhook import Addresses, parse_addresses, parse_mount
from federation.terminal.kubeconfigcontext import KubeconfigContext


@pytest.mark.parametrize(
    ("bind", "url", "expected"),
    [
        ("127.0.0.1:0", "", Addresses("127.0.0.1", 0, "")),
        ("[::1]:9443", "", Addresses("::1", 9443, "")),
        ("0.0.0.0:9443", "https://10.0.0.5:9443/", Addresses("0.0.0.0", 9443, "https://10.0.0.5:9443")),
        (
            "10.0.0.5:9443",
            "https://spread.example.com/base",
            Addresses("10.0.0.5", 9443, "https://spread.example.com/base"),
        ),
    ],
)
def test_addresses_are_parsed(bind: str, url: str, expected: Addresses) -> None:
    assert parse_addresses(bind, url) == expected


@pytest.mark.parametrize(
    ("bind", "url", "message"),
    [
        ("127.0.0.1", "", "write ADDRESS:PORT"),
        (":9443", "", "write ADDRESS:PORT"),
        ("127.0.0.1:https", "", "write ADDRESS:PORT"),
        ("127.0.0.1:1", "http://10.0.0.5", "write https://"),
        ("127.0.0.1:1", "https://", "write https://"),
        ("127.0.0.1:1", "https://a?b=c", "write https://"),
        ("0.0.0.0:9443", "", "give --url"),
        ("[::]:9443", "", "give --url"),
    ],
)
def test_unusable_addresses_are_refused(bind: str, url: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_addresses(bind, url)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("east.yaml=127.0.0.1:0", Addresses("127.0.0.1", 0, "")),
        ("east.yaml=[::1]:9443", Addresses("::1", 9443, "")),
        ("east.yaml=0.0.0.0:9443=https://10.0.0.5:9443", Addresses("0.0.0.0", 9443, "https://10.0.0.5:9443")),
    ],
)
def test_a_cluster_of_serve_is_parsed(text: str, expected: Addresses) -> None:
    assert parse_mount(text) == (KubeconfigContext(Path("east.yaml"), ""), expected)


@pytest.mark.parametrize("text", ["", "east.yaml", "east.yaml=", "=127.0.0.1:0"])
def test_a_cluster_of_serve_needs_a_file_and_an_address(text: str) -> None:
    with pytest.raises(ConfigurationError, match="write FILE=ADDRESS:PORT"):
        parse_mount(text)
