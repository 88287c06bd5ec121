"""Certificates that end soon, from metrics."""

from datetime import UTC, datetime

from federation.web.ui.expiringcertificates import expiring

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = """# TYPE federation_certificate_expiry_seconds gauge
federation_certificate_expiry_seconds{certificate="server"} 86400.0
federation_certificate_expiry_seconds{certificate="admin"} 8.64e+06
federation_certificate_expiry_seconds{certificate="front-proxy-client"} -5.0
other_metric 1.0
"""


def test_only_certificates_that_end_soon_are_named() -> None:
    assert [text for text, _ in expiring(TEXT, NOW)] == [
        "certificate front-proxy-client has expired",
        "certificate server expires in 1 day",
    ]


def test_without_metrics_there_is_nothing() -> None:
    assert expiring("", NOW) == []
