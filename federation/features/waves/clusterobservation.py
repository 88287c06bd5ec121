"""Read what a rollout depends on from the caches: the clusters, their member objects, and the gates of their waves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions, dotpaths
from federation.apimachinery.resources import Object
from federation.planning.aggregation.rules import RuleError
from federation.planning.drift.foreign import describe_foreign, foreign_fields
from federation.planning.failover.halts import fault_of
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.rendering.memberobject import Renderer, RenderError, content_hash
from federation.planning.status.readiness import Counts, Readiness, assess_readiness, count_pods
from federation.planning.status.resourcereadiness import assess_resource, count_replicas
from federation.planning.steps.memberstate import has_old_part
from federation.planning.waves.rolloutpart import Part, RolloutPart
from federation.planning.waves.waverecord import Observed, Record
from federation.planning.waves.waverules import Gate, Rules
from federation.runtime.members import Members

_REVISION_LENGTH_MAX = 64
"""Of the annotation of a member object, which somebody in the member may have written."""
CompileGate = Callable[[str], Callable[[Mapping[str, Any]], bool]]
"""Compiles a CEL expression to a function from a member object to whether the gate holds; both raise RuleError."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The clusters of a workload with their pods, and the templates that they run or are to run, by revision.

    The template of a custom resource is what a rollout brings of it (`planning/waves/rolloutpart.py`).
    """

    clusters: Mapping[str, Observed]
    templates: Mapping[str, Part]
    rendered: Mapping[str, Object]
    """The wanted member objects by cluster."""
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
        part: RolloutPart,
        rules: Rules,
        record: Record,
        stored: Mapping[str, Part],
        settled: str = "",
    ) -> Observation:
        """Return the clusters that the object is placed in. `stored` are the templates that the status keeps.

        `settled` is the revision of the workload's own template at the last complete rollout. A cluster whose cache is
        not complete counts as it was recorded, or as one without an object if it never was.
        """
        wanted_object = without_restored_templates(federated)
        renderer = Renderer(wanted_object, type_)
        earlier = stored.get(settled)
        is_changed = earlier is not None and settled != revision_of(part.of(federated["spec"]["template"]))
        settled_renderer = Renderer(_with_part(wanted_object, part, earlier), type_) if is_changed and earlier else None
        # A template that was read from a member has another revision once it is rendered.
        aliases = {revision_of(template): revision for revision, template in stored.items()}
        gates = {wave.name: wave.gate for wave in rules.waves}
        name, namespace = federated["spec"]["template"]["metadata"]["name"], federated["metadata"].get("namespace", "")
        clusters: dict[str, Observed] = {}
        templates: dict[str, Part] = {}
        objects: dict[str, Object] = {}
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
                problem = "its state is not known yet"
                clusters[cluster] = Observed(known.target, assumed, _labels(source), problem, is_out_of_reach=True)
                continue
            live_object = self._members.get_cached(cluster, type_.resource, namespace, name)
            live = None if live_object is None else _revision(part, live_object)
            live = aliases.get(live, live) if live is not None else None
            try:
                objects[cluster] = rendered = renderer.render(cluster).object
                wanted, problem = _revision(part, rendered), ""
                templates[wanted] = part.of(rendered)
                if live_object is not None and not has_old_part(part, rendered, live_object):
                    live = wanted
            except RenderError as error:
                wanted, problem = (known.target if known is not None else live or ""), str(error)
            if live_object is not None and live is not None:
                templates.setdefault(live, part.of(live_object))
                pods[cluster] = (
                    count_pods(live_object, type_.resource.kind)
                    if part.is_pod_template
                    else count_replicas(type_, live_object)
                )
            gate = gates.get(known.wave, Gate()) if known is not None else Gate()
            assessed = Readiness(problem) if problem else self._assess(source, live_object, gate, type_, part)
            if assessed.problem and not problem and live_object is not None and _is_ready(source):
                unready[cluster] = live_object
            if assessed.problem and not problem and live_object is not None and live == wanted:
                foreign = describe_foreign(foreign_fields(objects[cluster], live_object))
                assessed = assessed._replace(problem="; ".join(filter(None, (assessed.problem, foreign))))
            before = ""
            if known is None and settled_renderer is not None:
                before = _first_template(settled_renderer, part, cluster, templates)
            clusters[cluster] = Observed(
                wanted,
                live,
                _labels(source),
                assessed.problem,
                assessed.has_failed,
                before,
                is_out_of_reach=bool(fault_of(source)),
            )
        return Observation(clusters, templates, objects, pods, unready)

    def _assess(
        self, source: Object, live: Object | None, gate: Gate, type_: FederatedType, part: RolloutPart
    ) -> Readiness:
        """Return whether the gate holds in a cluster, its request aside."""
        if not _is_ready(source):
            return Readiness("the cluster is not ready")
        if live is None:
            return Readiness("it has no object yet")
        if gate.is_ready_required:
            readiness = (
                assess_readiness(live, type_.resource.kind)
                if part.is_pod_template
                else assess_resource(type_, live, self._compile_gate)
            )
            if readiness.problem:
                return readiness
        if not gate.expression:
            return Readiness()
        try:
            return Readiness() if self._compile_gate(gate.expression)(live) else Readiness("its expression is false")
        except RuleError as error:
            return Readiness(f"its expression fails: {error}")


def _with_part(federated: Object, part: RolloutPart, template: Part) -> Object:
    spec = federated["spec"]
    return {**federated, "spec": {**spec, "template": part.put(spec["template"], template)}}


def _first_template(renderer: Renderer, part: RolloutPart, cluster: str, templates: dict[str, Part]) -> str:
    """Return the revision of a cluster's template, which is added to `templates`; "" if overrides do not apply."""
    try:
        rendered = renderer.render(cluster).object
    except RenderError:
        return ""
    templates.setdefault(revision := _revision(part, rendered), part.of(rendered))
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


def _revision(part: RolloutPart, obj: Object) -> str:
    """Return the template revision of a member object; without a plausible one, that of its present template."""
    found = dotpaths.get(obj, ("metadata", "annotations", names.TEMPLATE_REVISION))
    if isinstance(found, str) and 0 < len(found) <= _REVISION_LENGTH_MAX:
        return found
    return revision_of(part.of(obj))


def revision_of(template: Part) -> str:
    """Return the template revision of a template."""
    return content_hash(template)
