"""SchedulerPluginWebhookConfiguration: a scheduler plugin that is reached over HTTP (spec §1.6, §6.7)."""

from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.resources import SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS
from federation.api.v1alpha1.base import AGE, Bytes, Definition, Duration, Kind, Model


class WebhookTLSConfig(Model):
    """How the connection to the plugin is secured."""

    ca_data: Bytes | None = None
    """The certificates, in PEM, that the plugin's certificate is verified with."""
    cert_data: Bytes | None = None
    """Our certificate, in PEM."""
    insecure: bool | None = None
    """Whether the plugin's certificate is not verified."""
    key_data: Bytes | None = None
    """The key of our certificate, in PEM."""
    server_name: str | None = None
    """The name that the plugin's certificate is verified against."""


class SchedulerPluginWebhookConfigurationSpec(Model):
    """Where the plugin is, and what it implements."""

    filter_path: str | None = None
    """The path of the filter call; empty when the plugin does not filter."""
    http_timeout: Duration = "5s"
    """How long one call may take."""
    payload_versions: Annotated[list[str], Field(min_length=1)]
    """The payload versions that the plugin understands, preferred first."""
    score_path: str | None = None
    """The path of the score call; empty when the plugin does not score."""
    select_path: str | None = None
    """The path of the select call; empty when the plugin does not select."""
    tls_config: WebhookTLSConfig | None = None
    """How the connection is secured."""
    url_prefix: str
    """The address of the plugin, to which the paths are appended."""


class SchedulerPluginWebhookConfiguration(Kind):
    """SchedulerPluginWebhookConfiguration makes an HTTP service a scheduler plugin of the same name."""

    DEFINITION: ClassVar[Definition] = Definition(
        SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, has_status=False, columns=(AGE,)
    )

    spec: SchedulerPluginWebhookConfigurationSpec
