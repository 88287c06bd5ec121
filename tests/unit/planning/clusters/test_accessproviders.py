"""The administrator's list of providers: which servers may get credentials, and which lists are refused."""

from typing import Any

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.planning.clusters.accessproviders import parse_providers


def an_entry(**fields: Any) -> dict[str, Any]:
    command = {"command": "/opt/plugin", "args": ["--one"], "env": [{"name": "A", "value": "b"}]}
    return {"name": "ocm", "execConfig": command, "servers": ["https://*.example.com:6443"], **fields}


def parsed(*entries: dict[str, Any]) -> Any:
    return parse_providers({"providers": list(entries)}, setting="file")


@pytest.mark.parametrize(
    ("pattern", "server", "expected"),
    [
        ("https://a.example.com", "https://a.example.com", True),
        ("https://a.example.com", "https://A.Example.com/k8s/clusters/one", True),
        ("https://a.example.com", "https://a.example.com:6443", False),
        ("https://a.example.com:*", "https://a.example.com:6443", True),
        ("https://*.example.com:6443", "https://a.b.example.com:6443", True),
        ("https://*.example.com:6443", "https://example.com:6443", False),
        ("https://*.example.com:6443", "https://badexample.com:6443", False),
        ("https://*.example.com:6443", "https://a.example.com.evil.org:6443", False),
        ("https://*.example.com:6443", "https://evil.org:6443/.example.com", False),
        ("https://*.example.com:6443", "https://a.example.com:6443@evil.org", False),
        ("https://*.example.com:6443", "https://evil.org#@a.example.com:6443", False),
        ("https://*.example.com:6443", "https://evil.org\\@a.example.com:6443", False),
        ("https://*.example.com", "https://evil.org\\.example.com", False),
        ("https://*.example.com", "https://evil.org/..\n.example.com", False),
        ("https://*.example.com", "http://a.example.com", False),
        ("https://*.example.com", "https://a.example.com?x", False),
        ("https://*", "https://anything.org", True),
        ("https://[::1]:6443", "https://[::1]:6443", True),
        ("https://10.0.0.1:6443", "https://10.0.0.1:6443", True),
        ("https://10.0.0.1:6443", "https://10.0.0.11:6443", False),
        ("https://a.example.com", "", False),
        ("https://a.example.com", "https://a.example.com:x", False),
    ],
)
def test_credentials_are_sent_to_the_servers_of_the_list_only(pattern: str, server: str, expected: bool) -> None:
    assert parsed(an_entry(servers=[pattern]))["ocm"].serves(server) is expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (an_entry(servers=[]), "servers: name the servers"),
        (an_entry(servers=["http://a"]), r"servers\[0\]: 'http://a' is no https"),
        (an_entry(servers=["https://a/path"]), r"servers\[0\]"),
        (an_entry(servers=["https://a*.b"]), r"servers\[0\]"),
        (an_entry(execConfig={"command": "plugin"}), "execConfig.command: give the absolute path"),
        (an_entry(execConfig={}), "execConfig.command"),
        (an_entry(execConfig={"command": "/p", "apiVersion": "v9"}), "execConfig.apiVersion: 'v9'"),
        (an_entry(execConfig={"command": "/p", "env": [{}]}), "execConfig.env: each entry needs a name"),
        (an_entry(profileSourcedCLIArgsPolicy="Append"), "must not choose arguments"),
        (an_entry(profileSourcedEnvVarsPolicy="Replace"), "must not choose arguments"),
        (an_entry(name=""), "give each provider a name"),
        (an_entry(other=1), "other"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused_with_the_field(entry: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        parsed(entry)


def test_a_list_keeps_its_order_and_its_names_are_unique() -> None:
    assert list(parsed(an_entry(name="b"), an_entry(name="a"))) == ["b", "a"]
    with pytest.raises(ConfigurationError, match=r"providers\[1\].name"):
        parsed(an_entry(), an_entry())
    plugin = parsed(an_entry())["ocm"].plugin
    assert (plugin.command, plugin.args, dict(plugin.env)) == ("/opt/plugin", ("--one",), {"A": "b"})
