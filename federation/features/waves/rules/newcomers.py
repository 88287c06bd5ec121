"""Clusters that get a workload during or after a rollout: their template and their wave, and who may get which. Pure.

A cluster without the object gets the template of the last wave that succeeded: the new one as soon as the gate of a
wave has held, the earlier one before that and after a failure.

Reference: docs/reference/rollout.md.
"""

from collections.abc import Mapping
from dataclasses import replace

from federation.planning.waves.waverecord import ClusterRecord, Observed, Phase, Record, WaveRecord
from federation.planning.waves.waverules import REMAINING, Rules


def approve(record: Record, observed: Mapping[str, Observed]) -> dict[str, str]:
    """Return the template revisions that sync may deliver, by cluster."""
    approved, is_back = {}, record.phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK)
    has_objects = any(seen.live is not None for seen in observed.values())
    for name, seen in sorted(observed.items()):
        cluster = record.clusters.get(name)
        if cluster is None:
            if seen.live is None and seen.wanted:
                approved[name] = _first_revision(record, seen, has_objects=has_objects)
        elif cluster.is_changed and is_back:
            approved[name] = cluster.good
        elif cluster.started_at is not None or cluster.good == cluster.target or not (cluster.wave or is_back):
            approved[name] = cluster.target
        elif seen.live is None:
            approved[name] = cluster.good  # Its object was deleted in the member.
    return approved


def _first_revision(record: Record, seen: Observed, *, has_objects: bool) -> str:
    """Return what a cluster gets that has no object yet: the template of the last wave that succeeded."""
    if record.phase is Phase.COMPLETE:
        return seen.wanted if has_objects else seen.settled or seen.wanted
    has_succeeded = any(wave.is_done and wave.held_since is not None for wave in record.waves)
    if record.phase is Phase.PROGRESSING and has_succeeded:
        return seen.wanted
    return _earlier_revision(record, seen)


def _earlier_revision(record: Record, seen: Observed) -> str:
    """Return what a cluster that came during a rollout would have had before it."""
    if record.phase is Phase.COMPLETE:
        return seen.wanted
    return seen.settled or record.replaced.get(seen.wanted) or seen.wanted


def remember_replaced(record: Record) -> Record:
    """Return the record with what the rollout replaces, also in clusters that will have left."""
    if record.phase is Phase.COMPLETE:
        return replace(record, replaced={}) if record.replaced else record
    pairs = {each.target: each.good for _, each in sorted(record.clusters.items()) if each.target != each.good}
    return replace(record, replaced={**record.replaced, **pairs})


def track(record: Record, rules: Rules, observed: Mapping[str, Observed]) -> Record:
    """Return the record without clusters that left, and with new ones that have the wanted or the earlier template."""
    kept = {name: cluster for name, cluster in record.clusters.items() if name in observed}
    tracked = record if kept == record.clusters else replace(record, clusters=kept)
    for name in sorted(observed.keys() - kept.keys()):
        seen = observed[name]
        earlier = _earlier_revision(record, seen)
        if seen.live == seen.wanted:
            entry = ClusterRecord("", seen.wanted, earlier, is_changed=earlier != seen.wanted)
            tracked = replace(tracked, clusters={**tracked.clusters, name: entry})
        elif seen.live is not None and seen.live == earlier:
            tracked = _join(tracked, rules, name, seen)
    return tracked


def _join(record: Record, rules: Rules, name: str, seen: Observed) -> Record:
    """Return the record with a cluster that got the earlier template: it fills an empty wave or is among the last."""
    wave, waves = "", record.waves
    assert seen.live is not None
    if record.phase in (Phase.PROGRESSING, Phase.STOPPED):
        pending = {each.name for each in waves if each.started_at is None and not each.is_done}
        empty = pending - {cluster.wave for cluster in record.clusters.values()}
        matching = (each.name for each in rules.waves if each.name in empty and each.matches(name, seen.labels))
        wave = next(matching, REMAINING)
        if wave not in {each.name for each in waves}:
            waves = (*waves, WaveRecord(wave))
    clusters = {**record.clusters, name: ClusterRecord(wave, seen.wanted, seen.live)}
    return replace(record, clusters=clusters, waves=waves)
