"""Read what a rollout depends on from the caches: the clusters, their member objects, and the gates of their waves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions, dotpaths
from federation.apimachinery.resources import Object
from federation.planning.aggregation.rules import RuleError
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.rendering.memberobject import Renderer, RenderError, template_revision
from federation.planning.status.readiness import Counts, Readiness, assess_readiness, count_pods
from federation.planning.steps.memberstate import has_old_template
from federation.planning.waves.waverecord import Observed, Record
from federation.planning.waves.waverules import Gate, Rules
from federation.runtime.members import Members

_REVISION_LENGTH_MAX = 64
"""Of the annotation of a member object, which somebody in the member may have written."""
CompileGate = Callable[[str], Callable[[Mapping[str, Any]], bool]]
"""Compiles a CEL expression to a function from a member object to whether the gate holds; both raise RuleError."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The clusters of a workload with their pods, and the templates that they run or are to run, by revision."""

    clusters: Mapping[str, Observed]
    templates: Mapping[str, Mapping[str, Any]]
    pods: Mapping[str, Counts]
    unready: Mapping[str, Object]
    """The member objects whose gates do not hold although their clusters are ready."""


class Observer:
    """Reads caches; `cluster` returns the FederatedCluster of a name."""

    def __init__(self, members: Members, cluster: Callable[[str], Object | None], compile_gate: CompileGate) -> None:
        self._members = members
        self._cluster = cluster
        self._compile_gate = compile_gate

    def observe(
        self,
        federated: Object,
        type_: FederatedType,
        rules: Rules,
        record: Record,
        stored: Mapping[str, Mapping[str, Any]],
        settled: str = "",
    ) -> Observation:
        """Return the clusters that the object is placed in. `stored` are the templates that the status keeps.

        `settled` is the revision of the workload's own template at the last complete rollout. A cluster whose cache is
        not complete counts as it was recorded, or as one without an object if it never was.
        """
        wanted_object = without_restored_templates(federated)
        renderer = Renderer(wanted_object, type_)
        earlier = stored.get(settled)
        is_changed = earlier is not None and settled != template_revision(federated["spec"]["template"])
        settled_renderer = Renderer(_with_template(wanted_object, earlier), type_) if is_changed else None
        # A template that was read from a member has another revision once it is rendered.
        aliases = {revision_of(template): revision for revision, template in stored.items()}
        gates = {wave.name: wave.gate for wave in rules.waves}
        name, namespace = federated["spec"]["template"]["metadata"]["name"], federated["metadata"].get("namespace", "")
        clusters: dict[str, Observed] = {}
        templates: dict[str, Mapping[str, Any]] = {}
        pods: dict[str, Counts] = {}
        unready: dict[str, Object] = {}
        for cluster in sorted(effective_placement(federated)):
            source = self._cluster(cluster)
            if source is None:
                continue
            known = record.clusters.get(cluster)
            is_known = self._members.is_synced(cluster, type_.resource)
            if not is_known and known is not None:
                assumed = known.target if known.is_changed or not known.wave else known.good
                clusters[cluster] = Observed(known.target, assumed, _labels(source), "its state is not known yet")
                continue
            live_object = self._members.get_cached(cluster, type_.resource, namespace, name)
            live = None if live_object is None else aliases.get(_revision(live_object), _revision(live_object))
            try:
                rendered = renderer.render(cluster).object
                wanted, problem = _revision(rendered), ""
                templates[wanted] = rendered["spec"]["template"]
                if live_object is not None and not has_old_template(rendered, live_object):
                    live = wanted
            except RenderError as error:
                wanted, problem = (known.target if known is not None else live or ""), str(error)
            if live_object is not None and live is not None:
                templates.setdefault(live, (live_object.get("spec") or {}).get("template") or {})
                pods[cluster] = count_pods(live_object, type_.resource.kind)
            gate = gates.get(known.wave, Gate()) if known is not None else Gate()
            assessed = Readiness(problem) if problem else self._assess(source, live_object, gate, type_.resource.kind)
            if assessed.problem and not problem and live_object is not None and _is_ready(source):
                unready[cluster] = live_object
            before = ""
            if known is None and settled_renderer is not None:
                before = _first_template(settled_renderer, cluster, templates)
            clusters[cluster] = Observed(wanted, live, _labels(source), assessed.problem, assessed.has_failed, before)
        return Observation(clusters, templates, pods, unready)

    def _assess(self, source: Object, live: Object | None, gate: Gate, kind: str) -> Readiness:
        """Return whether the gate holds in a cluster, its request aside."""
        if not _is_ready(source):
            return Readiness("the cluster is not ready")
        if live is None:
            return Readiness("it has no object yet")
        if gate.is_ready_required and (readiness := assess_readiness(live, kind)).problem:
            return readiness
        if not gate.expression:
            return Readiness()
        try:
            return Readiness() if self._compile_gate(gate.expression)(live) else Readiness("its expression is false")
        except RuleError as error:
            return Readiness(f"its expression fails: {error}")


def _with_template(federated: Object, template: Mapping[str, Any] | None) -> Object:
    spec = federated["spec"]
    workload = {**spec["template"], "spec": {**spec["template"]["spec"], "template": template}}
    return {**federated, "spec": {**spec, "template": workload}}


def _first_template(renderer: Renderer, cluster: str, templates: dict[str, Mapping[str, Any]]) -> str:
    """Return the revision of a cluster's pod template, which is added to `templates`; "" if overrides do not apply."""
    try:
        rendered = renderer.render(cluster).object
    except RenderError:
        return ""
    templates.setdefault(revision := _revision(rendered), rendered["spec"]["template"])
    return revision


def without_restored_templates(federated: Object) -> Object:
    """Return the object without the templates that this controller restores: what is rendered then is wanted."""
    spec = federated.get("spec") or {}
    overrides = [entry for entry in spec.get("overrides") or () if entry.get("controller") != names.ROLLOUT_CONTROLLER]
    return {**federated, "spec": {**spec, "overrides": overrides}}


def _is_ready(source: Object) -> bool:
    return conditions.is_true((source.get("status") or {}).get("conditions"), names.CLUSTER_READY)


def _labels(source: Object) -> Mapping[str, str]:
    return source["metadata"].get("labels") or {}


def _revision(obj: Object) -> str:
    """Return the template revision of a member object; without a plausible one, that of its present template."""
    found = dotpaths.get(obj, ("metadata", "annotations", names.TEMPLATE_REVISION))
    if isinstance(found, str) and 0 < len(found) <= _REVISION_LENGTH_MAX:
        return found
    return template_revision(obj)


def revision_of(template: Mapping[str, Any]) -> str:
    """Return the template revision of a pod template."""
    return template_revision({"spec": {"template": template}})
