"""Defaults that plugins of others rely on."""

from federation.scheduling.framework.types import PluginRequest
from federation.scheduling.webhooks.configuration import WebhookOptions


def test_a_request_without_a_timeout_has_the_documented_five_seconds() -> None:
    assert PluginRequest("https://plugin.example.com", b"").timeout_s == WebhookOptions("audit").timeout_s == 5.0
