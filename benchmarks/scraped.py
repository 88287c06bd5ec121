"""The samples of one reading of a control plane's /metrics."""

from collections.abc import Collection

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from federation.client.http import HTTPClient


class Scrape:
    """Sums over samples, such as those of all members."""

    def __init__(self, samples: list[Sample]) -> None:
        self._samples = samples

    def total(self, metric: str, **labels: Collection[str]) -> float:
        """Return the sum of the samples with this name whose labels each have one of the given values."""
        return sum(
            sample.value
            for sample in self._samples
            if sample.name == metric and all(sample.labels[name] in allowed for name, allowed in labels.items())
        )


async def scrape(host: HTTPClient) -> Scrape:
    _, text = await host.raw("GET", "/metrics", timeout_s=30.0)
    return Scrape([sample for family in text_string_to_metric_families(text.decode()) for sample in family.samples])
