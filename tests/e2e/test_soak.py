"""Churn over five members for a long time: memory, descriptors, the folder and latency stay as they were, nothing is lost.

`SOAK_MINUTES=30` runs it for half an hour; with `-s` it prints a line for each look. Users create, scale, change and
delete Deployments, and a member hangs or stops for a moment, all from a seed.
"""

import os
import random
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from federation.simulator.failures import Verb
from tests.e2e.test_simulated_failures import command
from tests.support.federation import Federation, eventually, federation

MINUTES = float(os.environ.get("SOAK_MINUTES", "3"))
MEMBERS = 5
APPS = 30
LOOK_S = float(os.environ.get("SOAK_LOOK_S", "20"))
WARM_UP = 0.25
"""The share of the time after which caches and pools have their size."""
pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.real_time, pytest.mark.timeout(120 * MINUTES + 300)]


class Look(NamedTuple):
    """What the control plane uses at one time."""

    at_s: float
    rss_mib: float
    descriptors: int
    folder_mib: float
    latency_s: float


def _deployment(name: str, replicas: int, image: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


class Churn:
    """Users who change Deployments, and members that fail."""

    def __init__(self, fed: Federation, seed: int) -> None:
        self._fed, self._api, self._random = fed, fed.api(), random.Random(seed)
        self.wanted: dict[str, tuple[int, str]] = {}
        self.changes = 0
        self._failed = ""

    def step(self) -> None:
        """Make one change."""
        name, replicas = f"app-{self._random.randrange(APPS):02d}", self._random.randrange(1, 11)
        image = f"web:{self._random.randrange(50)}"
        self.changes += 1
        if name not in self.wanted:
            if self._api.find("deployments", name) is not None:
                return  # it is being deleted
            self._api.create("deployments", _deployment(name, replicas, image))
            self.wanted[name] = replicas, image
        elif self._random.random() < 0.15:
            self._api.delete("deployments", name)
            del self.wanted[name]
        else:
            spec = _deployment(name, replicas, image)["spec"]
            self._api.patch("deployments", name, {"spec": {"replicas": replicas, "template": spec["template"]}})
            self.wanted[name] = replicas, image

    def fail_or_mend(self) -> None:
        """Let a member hang or stop, or mend the one that does."""
        if self._failed:
            command(self._fed.directory / "members", Verb.START, self._failed)
            self._failed = ""
        else:
            self._failed = self._random.choice(self._fed.members)
            command(self._fed.directory / "members", self._random.choice((Verb.HANG, Verb.STOP)), self._failed)

    def mend(self) -> None:
        if self._failed:
            self.fail_or_mend()


def _look(fed: Federation, number: int, started_s: float) -> Look:
    """Measure the control plane, and the time until a new ConfigMap is in the members that answer."""
    api, name = fed.api(), f"probe-{number}"
    began_s = time.monotonic()
    api.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})

    def statuses() -> dict[str, str]:
        """Return what the federated object says of each cluster, and the clusters that are not ready or have taints."""
        federated = api.find("federatedobjects", f"{name}-configmaps") or {}
        found = {c["cluster"]: c["status"] for c in (federated.get("status") or {}).get("clusters") or ()}
        for cluster in api.list("federatedclusters", namespace="")["items"]:
            conditions = {c["type"]: c["status"] for c in cluster["status"]["conditions"]}
            taints = [taint["key"] for taint in cluster["spec"].get("taints") or ()]
            found[f"{cluster['metadata']['name']} Ready"] = f"{conditions.get('Ready')} {taints}"
        return found

    def is_delivered(found: dict[str, str]) -> bool:
        """Return whether each healthy cluster of the placement has the object: one that failed may be in it, too."""
        # What is new is placed without clusters that have just come back, until they are stable.
        placed = {name: status for name, status in found.items() if not name.endswith(" Ready")}
        late = [name for name, status in placed.items() if status != "OK" and found[f"{name} Ready"] == "True []"]
        return list(placed.values()).count("OK") >= 2 and not late

    eventually(statuses, is_delivered)
    latency_s = time.monotonic() - began_s
    api.delete("configmaps", name)
    process = psutil.Process(fed.process.pid)
    size = sum(path.stat().st_size for path in fed.directory.glob("*.db*") if path.is_file())
    return Look(
        time.monotonic() - started_s, process.memory_info().rss / 2**20, process.num_fds(), size / 2**20, latency_s
    )


def test_a_long_churn_over_five_members_leaves_nothing_behind(tmp_path: Path) -> None:
    with federation(tmp_path / "fed", members=MEMBERS, is_fresh=True) as fed:
        kinds = [{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "v1", "kind": "ConfigMap"}]
        for mode, kind in zip(("Divide", "Duplicate"), kinds, strict=True):
            fed.kubectl.apply(
                {
                    "apiVersion": "core.kubeadmiral.io/v1alpha1",
                    "kind": "PropagationPolicy",
                    "metadata": {"name": mode.lower(), "namespace": "default"},
                    "spec": {
                        "schedulingMode": mode,
                        "resourceSelectors": [kind],
                        # Members that fail again and again are held out for longer than a look waits.
                        "tolerations": [{"operator": "Exists"}],
                    },
                }
            )
        churn, looks, started_s = Churn(fed, 1), list[Look](), time.monotonic()
        while (passed_s := time.monotonic() - started_s) < 60 * MINUTES:
            churn.step()
            if passed_s >= LOOK_S * (len(looks) + 1):
                looks.append(_look(fed, len(looks), started_s))
                print("{:5.0f} s  {:6.1f} MiB  {:4d} fds  {:6.1f} MiB on disk  {:.2f} s".format(*looks[-1]), flush=True)
                if len(looks) % 3 == 0:
                    churn.fail_or_mend()
            time.sleep(0.7)
        churn.mend()
        print(f"{churn.changes} changes, {len(churn.wanted)} Deployments left", flush=True)

        def wrong() -> dict[str, Any]:
            found = {}
            for name, (replicas, image) in churn.wanted.items():
                status = fed.api().get("deployments", name).get("status") or {}
                copies = fed.in_members("deployments", name).values()
                images = {c["spec"]["template"]["spec"]["containers"][0]["image"] for c in copies}
                runs = sum(copy["spec"]["replicas"] for copy in copies)
                if (runs, images, status.get("availableReplicas")) != (replicas, {image}, replicas):
                    found[name] = (runs, images, status.get("availableReplicas"), replicas, image)
            return found

        eventually(wrong, lambda found: not found)
        listed = {name for member in fed.members for name in fed.api(member=member).names("deployments")}
        assert listed == set(churn.wanted)

    warm = [look for look in looks if look.at_s >= WARM_UP * 60 * MINUTES]
    half = len(warm) // 2
    before, after = warm[:half], warm[half:]

    def median(part: list[Look], field: str) -> float:
        return statistics.median(getattr(look, field) for look in part)

    assert median(after, "rss_mib") <= 1.10 * median(before, "rss_mib") + 5
    # Each member has up to 32 connections, which bursts of requests open one after the other.
    assert max(look.descriptors for look in after) <= 60 + 32 * MEMBERS
    assert median(after, "latency_s") <= 2 * median(before, "latency_s") + 0.5
