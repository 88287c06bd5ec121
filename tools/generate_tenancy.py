"""Generate the table of tenancy: what each party may do with each kind, in its namespace and beyond it.

`python tools/generate_tenancy.py` writes `docs/reference/tenancy.md`. `--check` writes nothing and exits 1 if the file
is out of date. `tests/attacks/test_rights.py` sends a request for each cell.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from federation.api.crds import crd_manifests
from federation.api.kubefedkinds import FEDERATED_KINDS, REPLICA_PREFERENCES
from federation.api.resources import PROJECTS
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.auth.policyrules import PolicyRule, to_rules
from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.features.projects.rules import made_by
from federation.hosting.roles import HOST_RBAC
from tools.generate_rights import READ, WRITE, effective_roles

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "tenancy.md"
OWN, OTHER = "team", "other"
"""The namespace of the party, and another one."""
CLUSTER, PROJECT = "east", "shop"
"""The cluster of the project that OWN belongs to, and the project."""
SUBJECT: Object = {"kind": "User", "name": "project"}
PARTIES = ("view", "edit", "admin", "project", "member", "agent")
_ROLES = {"view": "view", "edit": "edit", "admin": "admin", "project": "edit"}
VERBS = (*READ, *WRITE)
_NAMESPACES = "namespaces"
_OF_ONE = ("get", "update", "patch", "delete")
_SUBRESOURCES = (
    ("", "v1", "pods", "exec", ("create",)),
    ("", "v1", "pods", "log", ("get",)),
    ("", "v1", "namespaces", "finalize", ("update",)),
    ("", "v1", "serviceaccounts", "token", ("create",)),
    ("core.kubeadmiral.io", "v1alpha1", "federatedclusters", "proxy", ("get", "create")),
)


class Kind(NamedTuple):
    """A kind of the host, or one of its subresources, and the verbs that it has."""

    group: str
    version: str
    plural: str
    subresource: str
    is_namespaced: bool
    verbs: tuple[str, ...]

    @property
    def title(self) -> str:
        """Its name in the table."""
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        return f"{name}/{self.subresource}" if self.subresource else name


class Reach(NamedTuple):
    """What an object of a namespace does beyond it: the word for it, what bounds it, and the test of the bound."""

    kinds: tuple[str, ...]
    word: str
    bound: str
    test: str


_NATIVE = (
    "cronjobs.batch",
    "daemonsets.apps",
    "deployments.apps",
    "jobs.batch",
    "persistentvolumeclaims",
    "pods",
    "replicasets.apps",
    "replicationcontrollers",
    "statefulsets.apps",
)
_WORKLOADS = (*_NATIVE, "clonesets.apps.kruise.io", "statefulsets.apps.kruise.io")
_KUBEFED = tuple(sorted(each.resource.group_resource for each in FEDERATED_KINDS.values() if each.resource.namespaced))
REACHES = (
    Reach(
        _WORKLOADS,
        "occupy",
        "quotas of the namespace; what waits counts for a quarter of a cluster at most",
        "test_cluster_rules.py",
    ),
    Reach(
        ("cronjobs.batch", "jobs.batch"),
        "spend",
        "the limits and shares of a JobQueue, which its administrator gives",
        "test_job_queues.py",
    ),
    Reach(
        ("cronfederatedhpas.core.kubeadmiral.io", "horizontalpodautoscalers.autoscaling"),
        "occupy",
        "as its workloads",
        "test_namespace_quota.py",
    ),
    Reach(
        ("propagationpolicies.core.kubeadmiral.io", REPLICA_PREFERENCES.group_resource),
        "move",
        "objects of the namespace, within the clusters of its project",
        "test_projects.py",
    ),
    Reach(
        ("overridepolicies.core.kubeadmiral.io",),
        "occupy",
        "objects of the namespace; the host admits what is overridden, and quotas count it",
        "test_overrides.py",
    ),
    Reach(
        ("deliverysuspensions.core.kubeadmiral.io",),
        "stop",
        "creations and updates in the namespace; no removal, drain or change of a policy waits for it",
        "test_suspensions.py",
    ),
    Reach(
        ("federatedrollouts.core.kubeadmiral.io",),
        "stop",
        "a ClusterDisruptionBudget for an hour at most",
        "test_cluster_rules.py",
    ),
    Reach(
        _KUBEFED,
        "occupy",
        "as the native object, whose rights the author needs",
        "test_kubefed.py",
    ),
)


class Shared(NamedTuple):
    """What many tenants share: what of a tenant enters its decisions, what that can do to others, and the test."""

    title: str
    enters: str
    verdict: str
    test: str


SHARED = (
    Shared(
        "[waves](policy-changes.md) of a cluster-wide policy",
        "health of the workloads that it places; policies of their namespaces",
        "what was unhealthy before, is new, or was changed since by its users proves nothing",
        "attacks/test_policy_changes.py",
    ),
    Shared(
        "objectives of such a wave",
        "metrics of its workloads",
        "50 objects are measured, from each namespace in turn",
        "attacks/test_policy_changes.py",
    ),
    Shared(
        "gates of a rollout", "answers of an address", "decide about its own rollout", "attacks/test_gate_addresses.py"
    ),
    Shared(
        "[ClusterDisruptionBudgets](failover.md#budgets-for-clusters)",
        "waves of FederatedRollouts",
        "hold a drain or a wave of others for an hour at most",
        "attacks/test_cluster_rules.py",
    ),
    Shared(
        "`Free` and `Waiting` of a cluster, scores, [taint policies](clusterrules.md)",
        "requests of pods",
        "what no node can run counts nowhere; what waits in a namespace, for a quarter at most",
        "attacks/test_cluster_rules.py",
    ),
    Shared(
        "health of a cluster",
        "objects that a member has",
        "not ready above 200,000 objects or 1 GiB; nothing leaves it then. Quotas bound a namespace",
        "attacks/test_member_limits.py",
    ),
    Shared(
        "rate of [failover](failover.md)",
        "replicas in lost clusters, `schedulingPriority`",
        "a namespace uses half of it at most",
        "unit/planning/failover/test_pace.py",
    ),
    Shared("halts of failover", "nothing", "lost clusters are counted", "unit/planning/failover/test_halts.py"),
    Shared(
        "[guard](guard.md) over moves",
        "objects in a cluster, or of a policy or profile",
        "what its users wish does not count. Many objects raise the number of which a fifth may move, see below",
        "scenarios/test_guard.py",
    ),
    Shared(
        "guard over deletions of data",
        "claims",
        "are counted per namespace",
        "scenarios/test_guard.py",
    ),
    Shared(
        "order of decisions",
        "`schedulingPriority`",
        "order only; every eighth decision is for what has waited longest",
        "unit/runtime/test_workqueue.py",
    ),
    Shared(
        "[JobQueues](queues.md) and their cohorts",
        "jobs",
        "quotas, lending limits and fair shares of administrators",
        "attacks/test_job_queues.py",
    ),
    Shared(
        "[preemption](preemption.md), which is off by default",
        "PriorityClass of a Deployment",
        "lower ones give way within their own budgets, see below",
        "scenarios/test_preemption.py",
    ),
    Shared(
        "affinity of workloads",
        "rules of its policies",
        "find workloads of the own namespace only",
        "attacks/test_workload_affinity.py",
    ),
    Shared(
        "quotas",
        "workloads, overrides",
        "of the own namespace only",
        "attacks/test_namespace_quota.py",
    ),
    Shared(
        "[suspensions](suspensions.md)",
        "DeliverySuspensions",
        "creations and updates of objects in the own namespace, not of the Namespace",
        "attacks/test_suspensions.py",
    ),
    Shared(
        "time of the API server",
        "requests, plans, replays, watches",
        "a fifth of the time; one plan or replay at a time",
        "attacks/test_loop_time.py",
    ),
)
"""Every place where objects of one tenant are part of a decision about others."""
CONTAINED = (
    "configmaps",
    "events",
    "events.events.k8s.io",
    "ingresses.networking.k8s.io",
    "leases.coordination.k8s.io",
    "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets.policy",
    "resourceclaims.resource.k8s.io",
    "resourceclaimtemplates.resource.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "secrets",
    "serviceaccounts",
    "services",
)
"""Kinds that tenants write and that do nothing beyond the namespace, in the host or in a member."""

_HEAD = """# Tenancy

Generated by tools/generate_tenancy.py. Do not edit.

This page lists what each party may do with each kind of the host. `view`, `edit` and `admin` are bound in one
namespace; *project* is a member of a [Project](projects.md) with the role `edit`. A *member* cluster has no identity on
the host. An *[agent](../pull-mode.md)* has one for its tunnel and for no other request.

*read* means get, list and watch, *write* create, update and patch, *delete* delete and deletecollection; a single verb
stands for itself. What is not in **bold** holds in the party's own namespace only. What is in bold holds beyond it: in
other namespaces, or for a kind without one. `tests/attacks/test_rights.py` sends a request for each cell.

| kinds | view | edit | admin | project | member | agent |
|---|---|---|---|---|---|---|
"""
_REACHES = """
By a request, no party can stop, occupy, spend, move or delete anything of another namespace. Bold words in the column
*project* are about the Project and its clusters, by name.

## What objects of a namespace do beyond it

Clusters, queues and policies are shared. This is what an object that a tenant may write does to others, and what bounds
it. The tests are in `tests/attacks`.

| kinds | can | bounded by | test |
|---|---|---|---|
"""
_SHARED = """
## What decides about several tenants

Each place where objects of one tenant are part of a decision about objects of others.

| decision | what of a tenant enters it | what it can do to others | test |
|---|---|---|---|
"""
_TAIL = """
Not bounded, as in Kubernetes: a PodDisruptionBudget that allows nothing keeps its pods in a cluster that is drained; a
workload that its users make unready inside its pods counts in a [wave](policy-changes.md#what-proves-nothing) of a
cluster-wide policy; and with preemption turned on, a workload may name any PriorityClass: restrict it with an admission
policy.

Not bounded, ours: the guard holds the moves of a cause that are more than a fifth of its objects. A tenant with most of
the objects in a cluster raises that number, so more objects of others move before a hold. Give namespaces quotas of
objects, or lower `guard_share`.

## Outside of the kinds

What `/federation/v1` shows beside the kinds, and to which users, is in [security](../security.md).
"""


def kinds() -> list[Kind]:
    """Return all kinds of the host, by group and name, then the subresources with rights of their own."""
    found = []
    for crd in crd_manifests():
        spec = crd["spec"]
        version, plural = spec["versions"][0]["name"], spec["names"]["plural"]
        found.append(Kind(spec["group"], version, plural, "", spec["scope"] == "Namespaced", VERBS))
    for info in builtin_kinds():
        resource: Resource = info.resource
        verbs = tuple(verb for verb in VERBS if verb in info.verbs)
        if not any(each[0] == resource.group and each[2] == resource.plural for each in found):
            found.append(Kind(resource.group, resource.version, resource.plural, "", resource.namespaced, verbs))
    namespaced = {(each.group, each.plural): each.is_namespaced for each in found}
    found.sort(key=lambda each: (each.group, each.plural))
    return [*found, *(Kind(*each[:4], namespaced[each[0], each[2]], each[4]) for each in _SUBRESOURCES)]


def project() -> Object:
    """Return the Project of the party with that name."""
    return {
        "apiVersion": PROJECTS.api_version,
        "kind": PROJECTS.kind,
        "metadata": {"name": PROJECT, "uid": "u"},
        "spec": {
            "namespaces": [OWN],
            "clusters": {"names": [CLUSTER]},
            "members": [{"role": "edit", "subjects": [SUBJECT]}],
        },
    }


def rights() -> dict[tuple[str, Kind, str], frozenset[str]]:
    """Return the allowed verbs by party, kind and namespace: OWN, or OTHER, which stands for no namespace, too."""
    roles, table = effective_roles(), {}
    everywhere = {party: tuple(_of_project()) if party == "project" else () for party in PARTIES}
    for party in PARTIES:
        for kind in kinds():
            for namespace in scopes(kind):
                rules = (*everywhere[party], *(roles[_ROLES[party]] if namespace == OWN and party in _ROLES else ()))
                held = (verb for verb in verbs_in(kind, namespace) if _is_allowed(rules, kind, verb, namespace))
                table[party, kind, namespace] = frozenset(held)
    return table


def _of_project() -> Iterator[PolicyRule]:
    """Yield the rules that a Project gives its members in no namespace."""
    for made in made_by(project(), [OWN], [CLUSTER]):
        yield from to_rules(made.obj.get("rules") or ())


def scopes(kind: Kind) -> tuple[str, ...]:
    """Return the namespaces in which requests for a kind differ; a Namespace is in itself."""
    return (OWN, OTHER) if kind.is_namespaced or kind.plural == _NAMESPACES else (OTHER,)


def verbs_in(kind: Kind, namespace: str) -> tuple[str, ...]:
    """Return the verbs of requests in a namespace: of Namespaces, the own one is no list."""
    if kind.plural != _NAMESPACES or namespace == OTHER:
        return kind.verbs
    return tuple(verb for verb in kind.verbs if verb in _OF_ONE)


def name_of(kind: Kind, namespace: str) -> str:
    """Return the name of the object that requests are about: of its own project or cluster where there is one."""
    return {"projects": PROJECT, "federatedclusters": CLUSTER, _NAMESPACES: namespace}.get(kind.plural, "a")


def _is_allowed(rules: tuple[PolicyRule, ...], kind: Kind, verb: str, namespace: str) -> bool:
    is_inside = kind.is_namespaced or (kind.plural == _NAMESPACES and verb in _OF_ONE)
    where = namespace if is_inside else ""
    wanted = Attributes(verb, kind.group, "*", kind.plural, kind.subresource, where, name_of(kind, namespace))
    needed = [wanted]
    if (contained := HOST_RBAC.implied.get((kind.group, kind.plural))) is not None and verb != "create":
        needed.append(Attributes("get", contained[0], "*", contained[1], namespace=where))
    return all(any(rule.allows(attributes) for rule in rules) for attributes in needed)


_WORDS: Mapping[str, tuple[str, ...]] = {
    "read": READ,
    "write": ("create", "update", "patch"),
    "delete": ("delete", "deletecollection"),
}


def _to_words(allowed: frozenset[str], kind: Kind) -> str:
    parts = []
    for word, group in _WORDS.items():
        of_group = [verb for verb in kind.verbs if verb in group]
        held = [verb for verb in of_group if verb in allowed]
        parts += [word] if held and held == of_group and not kind.subresource else held
    return ", ".join(parts)


def render() -> str:
    """Return the text of the page. Kinds with the same cells share a row."""
    table, rows = rights(), dict[tuple[str, ...], list[str]]()
    for kind in kinds():
        cells = []
        for party in PARTIES:
            own = _to_words(table.get((party, kind, OWN), frozenset()), kind)
            beyond = _to_words(table[party, kind, OTHER], kind)
            cells.append(", ".join(filter(None, (own, f"**{beyond}**" if beyond else ""))) or "-")
        rows.setdefault((str(kind.is_namespaced), *cells), []).append(f"`{kind.title}`")
    ordered = sorted(rows.items(), key=lambda row: (row[0][0] == "True", row[0].count("-"), row[1]))
    text = "".join(f"| {', '.join(titles)} | {' | '.join(cells[1:])} |\n" for cells, titles in ordered)
    reaches = "".join(
        f"| {', '.join(f'`{kind}`' for kind in each.kinds)} | {each.word} | {each.bound} | `{each.test}` |\n"
        for each in REACHES
    )
    shared = "".join(f"| {each.title} | {each.enters} | {each.verdict} | `tests/{each.test}` |\n" for each in SHARED)
    return f"{_HEAD}{text}{_REACHES}{reaches}{_SHARED}{shared}{_TAIL}"


def main(arguments: list[str]) -> int:
    """Write or check the page; return the exit code."""
    text = render()
    is_stale = not PAGE.exists() or PAGE.read_text() != text
    if "--check" in arguments:
        if is_stale:
            sys.stdout.write(f"{PAGE.relative_to(ROOT)} is out of date; run tools/generate_tenancy.py\n")
        return int(is_stale)
    if is_stale:
        PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
