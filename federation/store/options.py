"""What can be set in the store: one frozen dataclass for each of store and journal, every limit with its unit.

Only `settings.py` fills them from files and environment. Read `sql.py` next for where each limit acts.
"""

from dataclasses import dataclass
from typing import Literal

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Limits and intervals of one store; the defaults suit one control plane with some thousand objects."""

    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    """SQLite only. FULL: an acknowledged write survives a power cut. NORMAL: it survives kill -9, not a power cut."""

    busy_timeout_s: float = 5.0
    """How long to wait for a lock that another process holds on the database before answering StoreUnavailable."""

    writes_per_commit_max: int = 128
    """How many waiting writes share one transaction; more gains nothing, as the fixed cost of a commit is spent."""

    bytes_per_commit_max: int = 8 * MEBIBYTE
    """How many bytes share one transaction; bounds the time that a large batch makes a small write wait."""

    writes_pending_max: int = 20_000
    """How many writes may wait for their commit; beyond it a write is refused with StoreUnavailable."""

    recent_events_max: int = 4_096
    """How many of the newest changes stay in memory, so that a watch that reconnects soon costs no SQL."""

    recent_bytes_max: int = 16 * MEBIBYTE
    """How many bytes of values those changes may hold."""

    watcher_events_max: int = 10_000
    """How many changes may wait for one watcher before it is told to start again (StoreError)."""

    replay_events_max: int = 256
    """How many changes a watch that starts far back reads from SQL at a time."""

    progress_interval_s: float = 5.0
    """How often a watcher under whose prefix nothing changes is given an empty batch with the newest revision."""

    history_age_s_max: float = 600.0
    """How long a change stays readable (etcd behind Kubernetes compacts every 5 minutes; watchers resume within it)."""

    history_rows_max: int = 50_000
    """How many changes stay readable at most: some 6,000 objects' first rollout, about 150 MB at 3 kB each."""

    compaction_interval_s: float = 30.0
    """How often age and count are checked."""

    compaction_revisions_per_transaction: int = 100
    """How many revisions one purge transaction covers, about a millisecond; writes pass in between."""

    tail_interval_s: float = 1.0
    """PostgreSQL only. How often to look for other processes' writes when no notification arrives."""


@dataclass(frozen=True, slots=True)
class JournalOptions:
    """Limits of the decision journal; it forgets by age, by rows per object and by rows altogether."""

    age_days_max: float = 14.0
    """How long a decision can be asked for; an object's newest one longer, it says why the object is where it is."""

    rows_per_object_max: int = 20
    """How many decisions of one object are kept; `fedctl why` shows the newest, older ones show what changed."""

    rows_max: int = 50_000
    """How many decisions are kept altogether, about 200 MB at 4 kB of explanation each."""

    pending_max: int = 10_000
    """How many decisions may wait to be written; beyond it the oldest waiting one is dropped and counted."""

    rows_per_transaction_max: int = 100
    """How many decisions share one transaction."""

    flush_interval_s: float = 0.5
    """How long a decision may wait to be written."""

    prune_interval_s: float = 60.0
    """How often age and total are checked."""

    rows_per_prune_max: int = 2_000
    """How many old decisions one such check looks at, some milliseconds; the next one goes on after them."""
