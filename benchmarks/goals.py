"""The performance goals as data: which benchmarks are run, and which of their results have which limit.

`table.py` runs and prints them. A limit is a number in the unit of the result, or a multiple of what a bare client, which
makes the same writes without a control plane, takes in the same run. For an image it is a perfect controller, which keeps
to the same limits (`perfectrollout.py`).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """One benchmark with arguments; `size` replaces `{size}` in them and in the names of its results.

    The ordinary size fits into ten minutes for all runs; `full_size` is that of the goals.
    """

    script: str
    arguments: str = ""
    size: str = ""
    full_size: str = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """An upper limit of one result; with `bare`, the name of a result too, the limit is a multiple of that one."""

    what: str
    run: str
    result: str
    limit: float
    unit: str
    bare: str = ""


RUNS = {
    "propagation": Run("propagation", "--light --deployments {size}", "300", "1000"),
    "latency": Run("propagation", "--light --deployments {size} --rate 1", "30", "60"),
    "status": Run("status", "--changes {size}", "30", "60"),
    "scheduling": Run("scheduling", "--clusters 100,500,1000 --decisions {size}", "600", "2000"),
    "restart": Run("restart", "--deployments {size} --idle 10", "1000", "10000"),
    "pods": Run("pods", "--pods {size}", "10000 50000", "10000 100000 200000"),
    "fleet": Run("fleet", "--members {size} --targets 100 --objects 5 --idle 20", "1000", "1000"),
    "workloads": Run(
        "fleet",
        "--members 100 --rounds 3 --round-size 500 --timeout 7200 --workloads {size}",
        "500 3000",
        "10000 100000",
    ),
    "journal": Run("journal", "--objects {size}", "100000", "100000"),
}

DECISION_GOALS_MS = {100: (0.25, 1.0), 500: (0.7, 3.0), 1000: (1.2, 6.0)}
"""P50 of a decision by number of clusters, warm and cold."""

GOALS = (
    Goal("create, until all members have all", "propagation", "makespan_s", 1.25, "s", "bare_client_s"),
    Goal("scale all", "propagation", "scale_fan_out_s", 1.5, "s", "bare_scale_s"),
    Goal("change one override of all: a label", "propagation", "override_fan_out_s", 1.5, "s", "bare_override_s"),
    Goal("an image, until all pods are replaced", "propagation", "rollout_s", 1.25, "s", "perfect_rollout_s"),
    Goal("delete all, until members are empty", "propagation", "delete_s", 1.5, "s", "bare_delete_s"),
    Goal("host writes per Deployment", "propagation", "host_writes_per_deployment", 5, ""),
    Goal("CPU per Deployment, host API included", "propagation", "control_cpu_ms_per_deployment", 6, "ms"),
    Goal("latency at 1 per s, P50", "latency", "latency_p50_ms", 1.5, "ms", "bare_latency_p50_ms"),
    Goal("latency at 1 per s, P99", "latency", "latency_p99_ms", 1.5, "ms", "bare_latency_p99_ms"),
    Goal("status at 1 change per s, replica lost, P50", "status", "lost_p50_ms", 10, "ms"),
    Goal("status at 1 change per s, recovered, P50", "status", "recovered_p50_ms", 10, "ms"),
    Goal("status burst, replicas lost, P99", "status", "burst_lost_p99_ms", 300, "ms"),
    Goal("status burst, recovered, P99", "status", "burst_recovered_p99_ms", 300, "ms"),
    *(
        Goal(
            f"decision, {clusters} clusters, {name}, P50", "scheduling", f"latency_p50_ms_{clusters}{suffix}", ms, "ms"
        )
        for clusters, (warm_ms, cold_ms) in DECISION_GOALS_MS.items()
        for name, suffix, ms in (("warm", "", warm_ms), ("cold", "_cold", cold_ms))
    ),
    Goal("restart, first new object through", "restart", "deployments_{size}_first_object_s", 2, "s"),
    Goal("restart, host writes beyond those of a new object", "restart", "deployments_{size}_host_writes", 0, ""),
    Goal("idle with these Deployments x 3", "restart", "deployments_{size}_idle_cpu_percent", 3, "%"),
    Goal("memory with these Deployments x 3", "restart", "deployments_{size}_rss_mb", 600, "MB"),
    Goal("memory, with most pods / with fewest", "pods", "rss_ratio", 1.05, ""),
    Goal("1,000 members, idle", "fleet", "idle_cpu_percent", 30, "%"),
    Goal("1,000 members, memory", "fleet", "idle_rss_mb", 1500, "MB"),
    Goal("1,000 members, heartbeat lag, P90", "fleet", "heartbeat_lag_p90_s_max", 1, "s"),
    Goal("1 object to 100 of 1,000, counted, P90", "fleet", "counted_p90_s", 1, "s"),
    Goal("CPU per object, with most objects / with fewest", "workloads", "cpu_ratio", 1.3, ""),
    Goal("fedctl why, P99", "journal", "why_p99_ms", 50, "ms"),
    Goal("decisions by namespace and outcome, P99", "journal", "filtered_p99_ms", 50, "ms"),
)
