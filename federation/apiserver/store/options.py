"""The options of the store. `settings.py` fills them from files and environment; read `sql.py` for their use."""

from dataclasses import dataclass, field
from typing import Literal

from federation.apiserver.store.encryptionkeys import EncryptionOptions

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Limits and intervals of one store; the defaults suit a control plane with some thousand objects."""

    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    """SQLite only. FULL: an acknowledged write survives a power cut. NORMAL: it survives kill -9, not a power cut."""

    bytes_max: int = 0
    """Space quota: how large the database may be before creates and updates are refused (StoreFull); 0 for none."""

    disk_reserve_bytes: int = 8 * MEBIBYTE
    """SQLite only. Length of the log (WAL) on an idle or full disk: more than twice the largest object."""

    probe_interval_s: float = 2.0
    """How long the result of a write probe is reused, so that readiness requests cost few writes."""

    busy_timeout_s: float = 5.0
    """How long to wait for another process's lock on the database before raising StoreUnavailable."""

    transaction_pause_s_max: float = 3.0
    """PostgreSQL only. A process that pauses for longer within a transaction, because it was stopped or its machine is
    gone, loses its connection, so that others can write. Below `busy_timeout_s`: the waiting writes succeed then."""

    writes_per_commit_max: int = 128
    """How many waiting writes share one transaction; with more the fixed cost of a commit hardly matters."""

    bytes_per_commit_max: int = 8 * MEBIBYTE
    """How many bytes share one transaction; limits how long a small write waits for a large batch."""

    writes_pending_max: int = 20_000
    """How many writes may wait for their commit; further ones are refused with StoreUnavailable."""

    recent_events_max: int = 4_096
    """How many of the newest changes stay in memory; a watch that resumes within them needs no SQL."""

    recent_bytes_max: int = 16 * MEBIBYTE
    """How many bytes of values those changes may have."""

    watcher_events_max: int = 10_000
    """How many changes may wait for one watcher before its watch is canceled (WatchCanceled)."""

    replay_events_max: int = 256
    """How many changes a watch that resumes from the log reads at a time."""

    progress_interval_s: float = 5.0
    """How often an idle watcher gets an empty batch with the newest revision."""

    history_age_s_max: float = 600.0
    """How long a change stays readable, so that watchers can resume (kube-apiserver compacts etcd every 5 minutes)."""

    history_rows_max: int = 50_000
    """How many changes stay readable: the first rollout of some 6,000 objects, about 150 MB at 3 kB each."""

    compaction_interval_s: float = 30.0
    """How often the history is compacted."""

    compaction_revisions_per_transaction: int = 100
    """How many revisions one purge transaction covers (about a millisecond); writes run in between."""

    tail_interval_s: float = 1.0
    """PostgreSQL only. How often to query other processes' writes without a notification."""

    encryption: EncryptionOptions = field(default_factory=EncryptionOptions)
    """The encrypted resources, and the source of the keys."""
