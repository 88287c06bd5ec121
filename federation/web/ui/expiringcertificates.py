"""Certificates of the control plane that end soon, from its metrics, as `fedctl doctor` judges them. Pure."""

from datetime import datetime

from prometheus_client.parser import text_string_to_metric_families

from federation.planning.diagnosis.findings import Facts, Sample, diagnose
from federation.planning.diagnosis.level import Level

METRIC = "federation_certificate_expiry_seconds"


def expiring(metrics: str, now: datetime) -> list[tuple[str, str]]:
    """Return for each certificate that ends soon what is wrong and what to do."""
    lines = "\n".join(line for line in metrics.splitlines() if line.startswith(METRIC))
    families = text_string_to_metric_families(lines + "\n")
    samples = [Sample(sample.labels, sample.value) for family in families for sample in family.samples]
    found = diagnose(Facts(now, client_version="", readiness="", samples={METRIC: samples}))
    return [(each.text, each.remedy) for each in found if each.area == "certificates" and each.level != Level.OK]
