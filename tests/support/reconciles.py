"""How often controllers of this process have reconciled, by their own metric."""

from federation.runtime.controller import _outcomes as outcomes


def failed_reconciles() -> float:
    """Return how many reconciles of this process have ended in an unexpected failure."""
    return reconciles(outcome="failed")


def reconciles(**labels: str) -> float:
    """Return how many reconciles have ended, by controller or outcome."""
    return sum(
        sample.value
        for metric in outcomes.collect()
        for sample in metric.samples
        if sample.name.endswith("_total") and labels.items() <= sample.labels.items()
    )
