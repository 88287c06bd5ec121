"""Every metric follows the naming convention and exists from the start."""

import re

from federation import assembly
from federation.apimachinery import metrics

LAYERS = "base|store|registry|server|client|runtime|dispatch|scheduling|controllers|spread"


FLEET = "build_info|certificate_expiry_seconds|cluster_ready|delivery_seconds|delivery_stage_seconds|objects|replicas_unplaced"
"""What alerts are about. These names stay when the code behind them moves to another layer."""


async def test_metric_names_contain_layer_and_unit() -> None:
    assert assembly.Wiring  # imports every layer that records metrics
    text = (await metrics.to_text()).decode()
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE federation_")}

    assert names
    assert [name for name in sorted(names) if not re.fullmatch(rf"federation_(({LAYERS})_[a-z_]+|{FLEET})", name)] == []


def test_buckets_grow() -> None:
    assert list(metrics.LATENCY_BUCKETS_S) == sorted(set(metrics.LATENCY_BUCKETS_S))
