"""A real API server and ours answer the same generated requests alike, except for a list that may only shrink.

`differences/` makes the requests: manifests of Kubernetes and of this repository, valid objects with one field changed,
odd metadata of every kind, writes with a wrong identity, odd reads, watches, bodies, patches, options, subresources and
paths, CEL expressions over every type, and objects that are accepted with warnings. Nearly all are dry runs.
Answers are compared by code, reason, causes, message, warnings, headers and object. `differences/accepted.toml` has what may differ, with a
reason and a number of requests. `DIFFERENCES_SEED=7` chooses other requests.
"""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest
from tests.kubernetes.cluster import real_cluster
from tests.kubernetes.differences import accepted, costs, session
from tests.kubernetes.differences.answers import Answer, differences
from tests.support.apiserver import api_server
from tests.support.rest import Api

from federation.client.kubeconfig import load_kubeconfig

ARGUMENTS: Final = (
    "--disable-admission-plugins=TaintNodesByCondition",
    "--service-cluster-ip-range=10.96.0.0/12,fd00:10:96::/112",
)
"""Without controllers no node would lose the taint that this plugin adds."""
COMPARED_MIN: Final = 25_000
SEED: Final = int(os.environ.get("DIFFERENCES_SEED", "0"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Api]]:
    """The administrators of a real API server and of ours in memory, both without controllers of workloads."""
    folder = tmp_path_factory.mktemp("differences")
    real = real_cluster(folder / "real", controllers=False, arguments=ARGUMENTS)
    with real as cluster, api_server(folder / "ours") as parts:
        apis = cluster.api(), Api(load_kubeconfig(parts.kubeconfig))
        yield apis
        for api in apis:
            api.close()


def test_both_servers_answer_generated_requests_alike(servers: tuple[Api, Api]) -> None:
    real, ours = (answers(api) for api in servers)
    common = real.keys() & ours.keys()
    found = {origin: lines for origin in sorted(common) if (lines := differences(real[origin], ours[origin]))}
    entries = accepted.read(accepted.FILE.read_text())
    judgement = accepted.judge(found, entries)
    areas = Counter(origin.partition(":")[0] for origin in common)
    print(
        f"{len(common)} requests {dict(areas)}, {len(found)} with differences, {len(judgement.unexpected)} unexpected"
    )
    assert len(common) >= COMPARED_MIN
    problems = judgement.problems(entries) if SEED == 0 else list(judgement.unexpected)
    assert not problems, "\n".join(problems)


def answers(api: Api) -> dict[str, Answer]:
    """Return one server's answers by origin."""
    return session.answers(api, session.requests(session.prepare(api), SEED))


@pytest.mark.slow("400 definitions on two servers")
def test_both_servers_estimate_the_same_costs_of_rules(servers: tuple[Api, Api]) -> None:
    listed = list(costs.cost_requests())
    real, ours = ({origin: found.verdict for origin, found in session.answers(api, listed).items()} for api in servers)
    assert {origin: (real[origin], ours[origin]) for origin in real if real[origin] != ours[origin]} == {}
    codes = Counter(code for code, _, _ in real.values())
    assert min(codes[201], codes[422]) > len(listed) / 10
