"""The Grafana dashboard and the alert rules, as data; `generate_monitoring.py` writes them as files.

An expression names metrics by their full names; tests compare them with those that the product registers.
"""

from typing import NamedTuple


class Panel(NamedTuple):
    """A graph: its title, its unit in Grafana's words, and expressions with the legend of each."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


class Alert(NamedTuple):
    """A rule for Prometheus: `description` says what to do."""

    name: str
    severity: str
    lasts: str
    expression: str
    summary: str
    description: str


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}[5m]))"


def _quantile(metric: str, by: str, quantile: float = 0.99) -> str:
    return f"histogram_quantile({quantile}, sum by (le, {by}) (rate({metric}_bucket[5m])))"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Fleet",
        (
            Panel("Members that are ready", "short", (("max by (cluster) (federation_cluster_ready)", "{{cluster}}"),)),
            Panel("Objects by state", "short", (("max by (state) (federation_objects)", "{{state}}"),)),
            Panel("Replicas without a cluster", "short", (("max(federation_replicas_unplaced)", "replicas"),)),
            Panel(
                "Delivery: time from creation (99 %)",
                "s",
                ((_quantile("federation_delivery_seconds", "stage"), "{{stage}}"),),
            ),
            Panel(
                "Each stage of a delivery (99 %)",
                "s",
                ((_quantile("federation_delivery_stage_seconds", "stage"), "{{stage}}"),),
            ),
            Panel(
                "Stages of a delivery that end",
                "ops",
                ((_rate("federation_delivery_stage_seconds_count", "stage"), "{{stage}}"),),
            ),
        ),
    ),
    (
        "Controllers",
        (
            Panel("Keys that wait", "short", (("max by (queue) (federation_runtime_queue_depth)", "{{queue}}"),)),
            Panel(
                "Age of the oldest key",
                "s",
                (("max by (queue) (federation_runtime_queue_oldest_seconds)", "{{queue}}"),),
            ),
            Panel(
                "Time in the queue (99 %)",
                "s",
                ((_quantile("federation_runtime_queue_wait_seconds", "queue"), "{{queue}}"),),
            ),
            Panel(
                "Time of a reconcile (99 %)",
                "s",
                ((_quantile("federation_runtime_reconcile_seconds", "controller"), "{{controller}}"),),
            ),
            Panel("Keys added", "ops", ((_rate("federation_runtime_queue_adds_total", "queue"), "{{queue}}"),)),
            Panel(
                "Keys added again after a failure",
                "ops",
                ((_rate("federation_runtime_queue_retries_total", "queue"), "{{queue}}"),),
            ),
            Panel(
                "Reconciles that failed",
                "ops",
                ((_rate('federation_runtime_reconciles_total{outcome="failed"}', "controller"), "{{controller}}"),),
            ),
            Panel("Decisions", "ops", ((_rate("federation_scheduling_decisions_total", "outcome"), "{{outcome}}"),)),
        ),
    ),
    (
        "Job queues",
        (
            Panel(
                "Jobs",
                "short",
                (
                    ("max by (queue) (federation_queue_pending_jobs)", "{{queue}} waiting"),
                    ("max by (queue) (federation_queue_admitted_jobs)", "{{queue}} admitted"),
                ),
            ),
            Panel(
                "Used part of the quota",
                "percentunit",
                (
                    (
                        "max by (queue, flavor, resource) (federation_queue_used_ratio)",
                        "{{queue}} {{flavor}} {{resource}}",
                    ),
                ),
            ),
            Panel("Wait (95 %)", "s", ((_quantile("federation_queue_wait_seconds", "queue", 0.95), "{{queue}}"),)),
            Panel("Jobs that gave way", "ops", ((_rate("federation_queue_evictions_total", "queue"), "{{queue}}"),)),
        ),
    ),
    (
        "Members",
        (
            Panel(
                "Requests to members",
                "reqps",
                ((_rate("federation_client_requests_total", "cluster, code"), "{{cluster}} {{code}}"),),
            ),
            Panel("Latency (99 %)", "s", ((_quantile("federation_client_request_seconds", "cluster"), "{{cluster}}"),)),
            Panel(
                "Operations that wait",
                "short",
                (("max by (cluster) (federation_dispatch_queue_length)", "{{cluster}}"),),
            ),
            Panel(
                "Drift corrected",
                "ops",
                ((_rate("federation_dispatch_drift_corrections_total", "cluster"), "{{cluster}}"),),
            ),
        ),
    ),
    (
        "API server and store",
        (
            Panel("Requests", "reqps", ((_rate("federation_server_requests_total", "code"), "{{code}}"),)),
            Panel(
                "Latency (99 %)",
                "s",
                ((_quantile("federation_server_request_duration_seconds", "verb"), "{{verb}}"),),
            ),
            Panel("Commit (99 %)", "s", ((_quantile("federation_store_commit_seconds", "job"), "commit"),)),
            Panel("Size of the database", "bytes", (("max(federation_store_used_bytes)", "used"),)),
        ),
    ),
)

ALERTS = (
    Alert(
        "FederationDown",
        "critical",
        "2m",
        "absent(federation_build_info)",
        "No control plane is scraped",
        "Members keep running what they have. Start a control plane, or correct the scrape configuration.",
    ),
    Alert(
        "FederationClusterNotReady",
        "warning",
        "5m",
        "max by (cluster) (federation_cluster_ready) == 0",
        "Member {{ $labels.cluster }} is not ready",
        "See `fedctl clusters` and condition Ready of the FederatedCluster. Replicas leave it by the failover's rules.",
    ),
    Alert(
        "FederationObjectsFailing",
        "warning",
        "15m",
        'max(federation_objects{state="failing"}) > 0',
        "{{ $value }} objects are refused by a cluster",
        "`fedctl why KIND/NAME` shows per cluster what its API server answers.",
    ),
    Alert(
        "FederationReplicasUnplaced",
        "warning",
        "15m",
        "max(federation_replicas_unplaced) > 0",
        "{{ $value }} replicas fit in no cluster",
        "`fedctl why KIND/NAME` says why each cluster was rejected. Add capacity, or widen the policy.",
    ),
    Alert(
        "FederationDeliveryStuck",
        "warning",
        "15m",
        'max(federation_objects{state="propagating"}) > 0 and'
        ' increase(federation_dispatch_operations_total{result="OK"}[15m]) == 0',
        "Objects wait and no write to a member succeeds",
        "Look at the circuits (federation_client_circuit_open) and at `fedctl doctor`.",
    ),
    Alert(
        "FederationQueueOld",
        "warning",
        "10m",
        "max by (queue) (federation_runtime_queue_oldest_seconds) > 60",
        "Keys of {{ $labels.queue }} wait for more than a minute",
        "The process has too little CPU, or a reconcile hangs: see federation_runtime_workers_active.",
    ),
    Alert(
        "FederationJobQueueIdle",
        "warning",
        "30m",
        "max by (queue) (federation_queue_oldest_wait_seconds) > 1800"
        " and max by (queue) (federation_queue_admitted_jobs) == 0",
        "Jobs of ClusterJobQueue {{ $labels.queue }} wait, and none of it runs",
        "`fedctl queue NAME -n NAMESPACE` says what the first one waits for.",
    ),
    Alert(
        "FederationJobQueueWaits",
        "warning",
        "15m",
        "max by (queue) (federation_queue_oldest_wait_seconds) > 86400",
        "A job of ClusterJobQueue {{ $labels.queue }} waits for more than a day",
        "Compare federation_queue_used_ratio: raise the quota, add capacity, or lend and reclaim within a cohort.",
    ),
    Alert(
        "FederationStageSlow",
        "warning",
        "10m",
        "histogram_quantile(0.9, sum by (le, stage)"
        ' (rate(federation_delivery_stage_seconds_bucket{stage=~"federated|placed|overridden"}[5m]))) > 5',
        "One new object in ten takes more than 5 seconds until it is {{ $labels.stage }}",
        "Compare the queues of the controllers; `fedctl serve --profile` shows where the CPU time goes.",
    ),
    Alert(
        "FederationStoreDamaged",
        "critical",
        "0m",
        "max(federation_store_damaged_entries) > 0",
        "{{ $value }} stored objects do not match their checksum",
        "`fedctl db check` names them. Check the disk and restore a backup (docs/backup.md).",
    ),
    Alert(
        "FederationCommitsSlow",
        "warning",
        "10m",
        "histogram_quantile(0.99, sum by (le) (rate(federation_store_commit_seconds_bucket[5m]))) > 0.5",
        "One commit in a hundred takes more than half a second",
        "The disk or the PostgreSQL server is slow.",
    ),
    Alert(
        "FederationCertificateExpires",
        "critical",
        "1h",
        'min by (certificate) (federation_certificate_expiry_seconds{certificate!~".*ca"}) < 14 * 86400',
        "Certificate {{ $labels.certificate }} expires within two weeks",
        "Certificates are renewed after two thirds of their life: see the log for why this one was not.",
    ),
    Alert(
        "FederationCertificateAuthorityExpires",
        "warning",
        "1h",
        'min by (certificate) (federation_certificate_expiry_seconds{certificate=~".*ca"}) < 180 * 86400',
        "{{ $labels.certificate }} expires within half a year",
        "Plan a new certificate authority: every kubeconfig and every member's trust changes with it.",
    ),
    Alert(
        "FederationSecretsPlain",
        "info",
        "1h",
        "max(federation_store_encryption_enabled) == 0",
        "Secrets are stored as plain text",
        "`fedctl encryption-key FILE`, and give it to `fedctl serve` as --encryption-key-file.",
    ),
)
