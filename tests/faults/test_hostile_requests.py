"""Thousands of bad requests: no server error, a proper Status for every refusal, and no change of stored objects.

Each request has a budget of CPU time, which is how long it may stop the event loop, and all requests together one of
memory. CPU time is that of this process, so a busy machine does not count.

Each seed is a server of its own with one object of nearly every kind. A failure prints the seed and a curl command for every
request that was answered wrongly. More of them: `HOSTILE_REQUESTS=100000 pytest tests/faults/test_hostile_requests.py`
(per seed and test), with other seeds: `HOSTILE_SEED=1000`.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from tests.support.collector import scanning_new_objects_only
from tests.support.cputime import least_cpu_s
from tests.support.generated import nightly_after
from tests.support.hostile.chaos import SCRATCH, Chaos, may_write
from tests.support.hostile.hostility import Hostility
from tests.support.hostile.requests import Victim
from tests.support.hostile.world import KEPT, Answer, HostileRequest, Target, a_target

REQUESTS = int(os.environ.get("HOSTILE_REQUESTS", "3000"))
FIRST_SEED = int(os.environ.get("HOSTILE_SEED", "1"))
_SHOWN_MAX = 10
CPU_S_MAX = 0.5
MEMORY_BYTES_MAX = 128 * 1024 * 1024
"""Growth of the process's peak memory during the requests of one seed."""


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    with scanning_new_objects_only():
        yield


async def the_victims(target: Target) -> list[Victim]:
    """Return the kept objects in every served version."""
    victims = []
    for info in target.registry.kinds.all():
        name = "widgets.example.com" if info.resource.kind == "CustomResourceDefinition" else KEPT
        namespace = KEPT if info.resource.namespaced else ""
        if await target.store.get(info.key(namespace, name)) is None:
            continue
        obj = orjson.loads(await target.registry.get(info, namespace, name))
        root = f"/apis/{info.resource.group}" if info.resource.group else "/api"
        scope = f"/namespaces/{KEPT}" if info.resource.namespaced else ""
        collection = f"{root}/{info.resource.version}{scope}/{info.resource.plural}"
        victims.append(Victim(collection, obj, info.subresources, info.is_custom))
    assert len(victims) > 40
    return victims


def said(seed: int, wrong: list[tuple[str, HostileRequest, bytes]]) -> str:
    """Return the failure message: a count of each problem, and commands that repeat the first ones."""
    counted = Counter(problem for problem, _, _ in wrong)
    lines = [
        f"seed {seed}: {len(wrong)} requests were answered wrongly",
        *(f"{n} x {text}" for text, n in counted.most_common()),
    ]
    for problem, request, body in wrong[:_SHOWN_MAX]:
        lines += [
            "",
            f"{problem}: {request.about}, as {request.peer}",
            request.to_curl()[:4000],
            body.decode("utf-8", "replace")[:500],
        ]
    return "\n".join(lines)


async def timed(target: Target, request: HostileRequest) -> tuple[Answer, str]:
    """Send a request; return its answer, and its CPU time as a problem if it took too much, else ""."""
    answer, taken_s = await least_cpu_s(lambda: target.send(request), CPU_S_MAX)
    return answer, f"more than {CPU_S_MAX} s of CPU" if taken_s >= CPU_S_MAX else ""


class PeakMemory:
    """The peak of this process's resident memory from now on."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")
        self._before = self._peak()

    def growth(self) -> int:
        """Return the growth in bytes."""
        return self._peak() - self._before

    def _peak(self) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


@pytest.mark.slow("thousands of requests")
@pytest.mark.parametrize("seed", nightly_after(1, range(FIRST_SEED, FIRST_SEED + 5)))
async def test_bad_requests_are_refused_and_change_nothing(tmp_path: Path, seed: int) -> None:
    async with a_target(tmp_path) as target:
        victims = await the_victims(target)
        before = await target.values()
        wrong, codes = [], Counter[int]()
        peak = PeakMemory()
        for request in Hostility(seed, victims).requests(REQUESTS):
            answer, slow = await timed(target, request)
            codes[answer.status // 100] += 1
            problem = answer.problem(request) or (f"wrote {answer.writes}" if answer.writes else slow)
            if problem:
                wrong.append((problem, request, answer.body))
        if wrong:
            pytest.fail(said(seed, wrong), pytrace=False)
        assert await target.values() == before, f"seed {seed}"
        assert peak.growth() < MEMORY_BYTES_MAX, f"seed {seed}"
        assert codes[4] > REQUESTS * 0.7, f"seed {seed}: too few were bad: {codes}"
        await _still_serves(target, victims)


@pytest.mark.slow("thousands of requests")
@pytest.mark.parametrize("seed", nightly_after(1, range(FIRST_SEED, FIRST_SEED + 3)))
async def test_random_requests_change_only_their_own_objects(tmp_path: Path, seed: int) -> None:
    async with a_target(tmp_path) as target:
        victims = await the_victims(target)
        before = {key: value for key, value in (await target.values()).items() if f"/{SCRATCH}/" not in key}
        wrong, codes = [], Counter[int]()
        peak = PeakMemory()
        for request in Chaos(seed, victims).requests(REQUESTS):
            answer, slow = await timed(target, request)
            codes[answer.status // 100] += 1
            strange = [write for write in answer.writes if not may_write(request, write[1])]
            problem = answer.problem(request) or (f"wrote {strange}" if strange else slow)
            if problem:
                wrong.append((problem, request, answer.body))
        if wrong:
            pytest.fail(said(seed, wrong), pytrace=False)
        after = await target.values()
        changed = {key: (value, after.get(key)) for key, value in before.items() if after.get(key) != value}
        assert not changed, f"seed {seed}: {changed}"
        assert peak.growth() < MEMORY_BYTES_MAX, f"seed {seed}"
        assert codes[2] > REQUESTS * 0.1, f"seed {seed}: too few were accepted: {codes}"
        assert codes[4] > REQUESTS * 0.1, f"seed {seed}: too few were refused: {codes}"
        await _still_serves(target, victims)


async def _still_serves(target: Target, victims: list[Victim]) -> None:
    """Read every kept object, and write one."""
    for victim in victims:
        answer = await target.send(HostileRequest("GET", victim.path))
        assert answer.status == 200
        assert orjson.loads(answer.body) == victim.obj
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after-all"}}
    answer = await target.send(HostileRequest("POST", f"/api/v1/namespaces/{KEPT}/configmaps", body=orjson.dumps(made)))
    assert answer.status == 201, answer.body
