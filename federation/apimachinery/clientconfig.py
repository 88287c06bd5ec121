"""Validation of a webhook's `clientConfig`, with the texts of k8s.io/apiserver/pkg/util/webhook. Pure.

Admission webhooks and the conversion webhooks of CustomResourceDefinitions share it. `webhooks.py` calls webhooks.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from federation.apimachinery.fielderrors import Causes, invalid, required

_FORM = "; desired format: https://host[/path]"


def validate_client_config(config: Mapping[str, Any], field: str) -> Causes:
    """Return the causes of an invalid address: exactly one of `url` and `service` is required."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(field, "exactly one of url or service is required")]
    return (
        _validate_url(str(url), f"{field}.url") if service is None else _validate_service(service, f"{field}.service")
    )


def _validate_url(url: str, field: str) -> Causes:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return [required(field, f"url must be a valid URL: {error}{_FORM}")]
    problems = (
        (parts.scheme != "https", parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"),
        (not parts.hostname, parts.netloc, f"host must be specified{_FORM}"),
        ("@" in parts.netloc, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL"),
        (bool(parts.fragment), parts.fragment, "fragments are not permitted in the URL"),
        (bool(parts.query), parts.query, "query parameters are not permitted in the URL"),
    )
    return [invalid(field, value, text) for is_wrong, value, text in problems if is_wrong]


def _validate_service(service: Mapping[str, Any], field: str) -> Causes:
    causes = [
        required(f"{field}.{part}", f"service {part} is required")
        for part in ("name", "namespace")
        if not service.get(part)
    ]
    port, path = service.get("port", 443), service.get("path")
    if not 1 <= port <= 65535:
        causes.append(invalid(f"{field}.port", port, "port is not valid: must be between 1 and 65535, inclusive"))
    if path and not path.startswith("/"):
        causes.append(invalid(f"{field}.path", path, "must start with a '/'"))
    return causes
