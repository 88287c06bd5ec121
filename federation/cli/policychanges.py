"""`fedctl rollout` for policies: changes in waves of objects (docs/reference/policy-changes.md).

The record is in the status of the policy, and wishes about it are in its `spec.changeRollout`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object, Resource
from federation.planning.waves.changerules import ChangeRules, current_wave, find_change_rules, waiting_wave
from federation.planning.waves.policychanges import FIELD, ChangeRecord, ChangeWave, record_of
from federation.planning.waves.waverecord import Phase
from federation.planning.waves.wishes import check_reason, override_reason, to_approval, to_pause
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, print_field, print_rows

if TYPE_CHECKING:
    from federation.client.http import HTTPClient


def status(policy: Object, target: str, output: str) -> int:
    """Print the waves of the last change; return 0 if it is complete, 1 otherwise."""
    record, _ = _read(policy, target)
    if output != "table":
        print_document({FIELD: policy["status"][FIELD]}, output)
    else:
        _print(record, policy, target)
    return 0 if record.phase is Phase.COMPLETE else 1


async def pause(host: "HTTPClient", resource: Resource, policy: Object, target: str, *, is_paused: bool) -> None:
    """Keep further waves from starting, or let them start again."""
    _read(policy, target)
    await _write(host, resource, policy, to_pause(is_paused=is_paused))
    print(f"{target}: {'waves start again' if not is_paused else 'no other wave starts'}")


async def approve(host: "HTTPClient", resource: Resource, policy: Object, target: str, reason: str) -> None:
    """Let the wave start, or be followed, that waits for approval."""
    record, rules = _read(policy, target)
    wave = waiting_wave(record, rules)
    if wave is None:
        raise ConfigurationError(f"{target}: no wave waits for approval")
    check_reason(record.reason, reason)
    await _write(host, resource, policy, to_approval(record.revision, wave, reason))
    print(f"{target}: wave {wave} of change {record.revision} is approved")


async def end(
    host: "HTTPClient",
    resource: Resource,
    policy: Object,
    target: str,
    to_fields: Callable[[int], dict[str, Any]],
    done: str,
) -> None:
    """End the change with these fields, and print what is done."""
    record, _ = _read(policy, target)
    if record.phase not in (Phase.PROGRESSING, Phase.STOPPED):
        raise ConfigurationError(f"{target}: no change is in progress; its state is {record.phase}")
    await _write(host, resource, policy, to_fields(record.revision))
    print(f"{target}: {done.format(record.revision)}")


def _read(policy: Object, target: str) -> tuple[ChangeRecord, ChangeRules]:
    rules = find_change_rules(policy)
    if rules is None:
        raise ConfigurationError(f"{target}: its changes reach all objects at once; it has no spec.changeRollout")
    record = record_of(policy)
    if record is None:
        raise ConfigurationError(f"{target}: the control plane has not read its spec.changeRollout yet; try again")
    return record, rules


async def _write(host: "HTTPClient", resource: Resource, policy: Object, fields: Mapping[str, Any]) -> None:
    metadata = policy["metadata"]
    namespace = metadata.get("namespace") or ""
    await host.patch(resource, metadata["name"], {"spec": {FIELD: fields}}, namespace=namespace)


def _print(record: ChangeRecord, policy: Object, target: str) -> None:
    console, current = make_console(), current_wave(record)
    done = sum(wave.is_done for wave in record.waves)
    progress = f", {done}/{len(record.waves)} waves" if record.waves else ""
    console.print(f"{target}: {record.phase}, change {record.revision}{progress}")
    if current is not None and record.phase is not Phase.COMPLETE:
        print_field(console, "wave:", current.name)
    rules = find_change_rules(policy)
    overridden = override_reason(rules.wishes, record.revision) if rules is not None else ""
    for label, text in (
        ("waits:", record.message),
        ("failure:", record.reason),
        ("overridden:", overridden),
    ):
        if text and (label != "waits:" or text != record.reason):
            print_field(console, label, text)
    count = (policy.get("status") or {}).get("refCount")
    rows = (_row(wave, record) for wave in record.waves)
    empty = "every object has the policy as it is" + (f" ({count})" if count is not None else "")
    print_rows(record.waves, "table", empty, rows, "WAVE, OBJECTS, STATE", "SINCE")


def _row(wave: ChangeWave, record: ChangeRecord) -> list[str]:
    since = wave.held_since or wave.started_at
    state = (
        "Complete" if wave.is_done else "Pending" if not wave.bound else "Healthy" if wave.held_since else "Progressing"
    )
    if wave.bound and record.phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK):
        state = str(record.phase)
    return [wave.name, str(wave.objects) if wave.bound else "-", state, to_rfc3339(since) if since else ""]
