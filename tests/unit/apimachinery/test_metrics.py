"""Every metric follows the naming convention and exists from the start."""

import importlib
import pkgutil
import re

from prometheus_client import Gauge

from federation import assembly, features
from federation.apimachinery import metrics

LAYERS = "base|store|registry|server|client|runtime|dispatch|features|scheduling|controllers|spread|queue"


FLEET = "build_info|certificate_expiry_seconds|cluster_ready|delivery_seconds|delivery_stage_seconds|objects|replicas_unplaced"
"""What alerts are about. These names stay when the code behind them moves to another layer."""


async def test_metric_names_contain_layer_and_unit() -> None:
    assert assembly.Wiring  # imports every layer that records metrics
    # Features import their controllers when they are used; which ones are imported must not depend on earlier tests.
    for module in pkgutil.walk_packages(features.__path__, f"{features.__name__}."):
        importlib.import_module(module.name)
    text = (await metrics.to_text()).decode()
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE federation_")}

    assert names
    assert [name for name in sorted(names) if not re.fullmatch(rf"federation_(({LAYERS})_[a-z_]+|{FLEET})", name)] == []


async def test_one_metric_is_read_alone() -> None:
    text = (await metrics.to_text("python_info")).decode()
    assert [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")] == ["python_info"]
    assert await metrics.to_text("federation_unknown") == b""


def test_a_gauge_is_computed_from_its_owner_and_does_not_keep_it() -> None:
    gauge = Gauge("federation_base_shown", "For this test", registry=None)
    owner = {"one", "two"}
    metrics.show(gauge, owner, len)
    (before,) = gauge.collect()
    del owner
    (after,) = gauge.collect()
    assert [before.samples[0].value, after.samples[0].value] == [2, 0]


def test_buckets_grow() -> None:
    assert list(metrics.LATENCY_BUCKETS_S) == sorted(set(metrics.LATENCY_BUCKETS_S))
