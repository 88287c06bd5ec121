"""A real API server and ours answer dry runs of many manifests alike.

The corpus has Kubernetes' own manifests, those of this repository, and valid ones with many fields set (`seeds/`): they
must be answered alike, except for what `DELIBERATE` lists. From the seeds, `mutations.py` makes about ten thousand
slightly wrong manifests. Our server validates less than the real one, so of those a bounded number may differ: a member
refuses what the host accepts, and the object's condition shows it. Lower the bound whenever a mend allows it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.kubernetes import corpus
from tests.kubernetes.comparison import differences
from tests.kubernetes.corpus import Manifest
from tests.kubernetes.mutations import mutations
from tests.kubernetes.session import send_all
from tests.support.rest import Api

DIFFERING_MUTATIONS_MAX: Final = 600
"""Of about 10,000."""
MANIFESTS_MIN: Final = 600
DELIBERATE: Final = {
    r"object: status\.(acceptedNames|conditions)\b.*NamesAccepted|object: status\.acceptedNames|"
    r"object: status\.conditions: real null": "a CRD's names are accepted in its create, not a moment later",
    r"object: .*: real null \| ours \(absent\)": "a null says no more than an absent field, and clients read both alike",
    r"object: metadata\.annotations: real \{\"deprecated\.daemonset": "deprecated; each member counts its own generation,"
    r" so the host's would look like drift",
    r"object: status\.(lastPhaseTransitionTime|conditions\[\]\.lastTransitionTime): real \S+ \| ours \(absent\)": "controllers of volumes and pods run in members, and set the times of their statuses",
    r"^warnings:": "a warning does not change what is stored; those of unknown fields are tested elsewhere",
    r"apiservices\.apiregistration\.k8s\.io \"v1beta1\.metrics\.k8s\.io\" already exists": "the host serves the metrics of"
    r" its members, so the API service is there from the start",
    r"object: status\.error: ": "a TokenReview names both authenticators that refused",
    r"object: metadata\.labels: real \{\"batch\.kubernetes\.io": "the labels of a Job are those that its user gave;"
    r" the real one shares a map by accident when the template's labels are empty",
    r"object: status: real \{(\"daemonEndpoints|\"attached)": "an empty status says no more than an absent one",
    r"example.com/a": "an attacher with a slash: drivers of volumes run in members, which refuse it",
    r"service ?account .* not found": "pods run in members, where their service account is a follower",
    r"integer value of priority": "priority classes are those of the members",
    r"appArmorProfile": "the annotation of AppArmor is deprecated; each member converts it",
    r"object: status\.qosClass": "resources of whole pods do not count yet; a member computes its own class",
    r"spec\.resourceClaims\[\]\.resourceClaimName": "the pod's members refuse it",
}
"""What differs on purpose or is left to the members, with the reason."""


def test_manifests_of_kubernetes_and_ours_are_answered_alike(servers: tuple[Api, Api]) -> None:
    listed = [each for each in (*corpus.manifests(), *corpus.seeds()) if "bootstrappolicy" not in each.origin]
    compared, found = compare(servers, listed)
    unexpected = {line: origin for line, origin in found if not any(re.search(text, line) for text in DELIBERATE)}
    print(f"{compared} manifests, {len(found)} differences, {len(unexpected)} unexpected")
    assert compared >= MANIFESTS_MIN
    assert not unexpected, "\n".join(f"{line}  [{origin}]" for line, origin in unexpected.items())


def test_most_wrong_manifests_are_answered_alike(servers: tuple[Api, Api]) -> None:
    compared, found = compare(servers, list(mutated()))
    found = [(line, origin) for line, origin in found if not any(re.search(text, line) for text in DELIBERATE)]
    differing = {origin for _, origin in found}
    print(f"{compared} mutations, {len(differing)} differ; the most frequent differences:")
    for line, count in Counter(line for line, _ in found).most_common(40):
        print(f"{count:5} {line[:200]}")
    assert len(differing) <= DIFFERING_MUTATIONS_MAX


def mutated() -> Iterator[Manifest]:
    for seed in corpus.seeds():
        for name, obj in mutations(seed.obj):
            yield Manifest(f"{seed.obj['kind']} {seed.obj['metadata'].get('name', '')}: {name}", obj)


def compare(servers: tuple[Api, Api], listed: list[Manifest]) -> tuple[int, list[tuple[str, str]]]:
    """Return how many manifests both servers serve, and each difference with its manifest."""
    real, ours = (send_all(api, listed) for api in servers)
    both = [origin for origin in real if origin in ours]
    found = [(_general(line), origin) for origin in both for line in differences(real[origin], ours[origin])]
    return len(both), found


def _general(line: str) -> str:
    """Return a difference without indices, so that equal ones of several manifests are one."""
    return re.sub(r"\[\d+\]", "[]", line)
