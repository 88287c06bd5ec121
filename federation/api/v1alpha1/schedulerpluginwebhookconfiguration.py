"""SchedulerPluginWebhookConfiguration: a scheduler plugin that is reached over HTTP.

Reference: docs/reference/kinds.md and docs/reference/webhook-plugins.md.
"""

from enum import StrEnum
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


class WebhookFailurePolicy(StrEnum):
    """The fate of a decision when the plugin fails."""

    FAIL = "Fail"
    IGNORE = "Ignore"


class WebhookUnitField(StrEnum):
    """A part of the object that is placed."""

    ANNOTATIONS = "annotations"
    CURRENT = "current"
    LABELS = "labels"
    POLICY = "policy"
    RESOURCE_REQUEST = "resourceRequest"
    TEMPLATE = "template"


class WebhookClusterField(StrEnum):
    """A part of a cluster."""

    ANNOTATIONS = "annotations"
    API_RESOURCE_TYPES = "apiResourceTypes"
    CONDITIONS = "conditions"
    LABELS = "labels"
    RESOURCES = "resources"
    TAINTS = "taints"


class WebhookFields(Model):
    """The fields that requests contain besides names, mode and replicas."""

    cluster: list[WebhookClusterField] | None = None
    """The fields of each cluster."""
    unit: list[WebhookUnitField] | None = None
    """The fields of the object."""


class SchedulerPluginWebhookConfigurationSpec(Model):
    """The address of the plugin, and the extension points that it implements."""

    failure_policy: WebhookFailurePolicy | None = None
    """Fail, the default: decisions wait until the plugin works again. Ignore: decisions are made without the plugin. An
    extension of this project."""
    fields: WebhookFields | None = None
    """The fields that requests contain. An extension of this project, for payload version v1beta1."""
    filter_path: str | None = None
    """The path of the filter call; empty when the plugin does not filter."""
    http_timeout: Duration = "5s"
    """The timeout of a call; in payload version v1beta1 including all attempts."""
    payload_versions: Annotated[list[str], Field(min_length=1)]
    """The payload versions that the plugin understands, preferred first."""
    replicas_path: str | None = None
    """The path of the replicas call; empty when the plugin does not divide replicas. An extension of this project, for
    payload version v1beta1."""
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
        SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, "spwc", has_status=False, columns=(AGE,)
    )

    spec: SchedulerPluginWebhookConfigurationSpec
