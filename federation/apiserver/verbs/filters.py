"""Label and field selectors over stored bytes, and the fields that a field selector may name per kind.

`Filter` combines a label and a field selector for one kind. It reads names and namespaces from the store key, caches
labels, and parses an object only when another field is selected.

Decision: docs/decisions/0157-members-list-what-they-may-list-by-name.md
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Any

from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.errors import BadRequest
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import FieldTerm, Selector, parse_field_selector, parse_label_selector
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo

_NAME = "metadata.name"
_NAMESPACE = "metadata.namespace"

_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "type",
)
_REGARDING_FIELDS = tuple(
    field.replace("involvedObject", "regarding").replace("reportingComponent", "reportingController")
    for field in _EVENT_FIELDS
)
_FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "events"): (*_EVENT_FIELDS, "source"),
    ("events.k8s.io", "events"): _REGARDING_FIELDS,
    ("", "nodes"): ("spec.unschedulable",),
    ("", "namespaces"): ("status.phase",),
    ("", "secrets"): ("type",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
    ("certificates.k8s.io", "certificatesigningrequests"): ("spec.signerName",),
    ("resource.k8s.io", "resourceslices"): ("spec.driver", "spec.nodeName"),
}
_SOURCES: dict[tuple[str, str], Callable[[Object], Any]] = {
    ("batch", "status.successful"): lambda job: (job.get("status") or {}).get("succeeded", 0),
    ("", "spec.unschedulable"): lambda node: (node.get("spec") or {}).get("unschedulable", False),
    ("", "spec.hostNetwork"): lambda pod: (pod.get("spec") or {}).get("hostNetwork", False),
    ("", "status.replicas"): lambda obj: (obj.get("status") or {}).get("replicas", 0),
    ("", "source"): lambda event: (event.get("source") or {}).get("component") or event.get("reportingComponent"),
    ("events.k8s.io", "reportingController"): lambda event: (
        event.get("reportingController") or (event.get("deprecatedSource") or {}).get("component", "")
    ),
    ("", "reportingComponent"): lambda event: (
        event.get("reportingComponent") or (event.get("source") or {}).get("component", "")
    ),
}


class LabelCache:
    """Labels of recently matched objects by key and revision, so that many watchers parse an object once."""

    def __init__(self, entries_max: int) -> None:
        self._entries: OrderedDict[tuple[str, int], dict[str, str]] = OrderedDict()
        self._entries_max = entries_max

    def labels(self, key: str, revision: int, value: bytes) -> dict[str, str]:
        """Return the labels of the object stored as `value`; read-only."""
        found = self._entries.get((key, revision))
        if found is None:
            found = encoding.decode_metadata(value).get("labels") or {} if b'"labels":{"' in value else {}
            self._entries[key, revision] = found
            if len(self._entries) > self._entries_max:
                self._entries.popitem(last=False)
        return found


class Filter:
    """A label and a field selector for one kind."""

    def __init__(
        self,
        info: KindInfo,
        label_selector: str,
        field_selector: str,
        cache: LabelCache,
        shown: Collection[str] | None = None,
        hides: Callable[[bytes], bool] | None = None,
    ) -> None:
        """`shown` are the names of the only objects that can match, None for all; what `hides` accepts cannot match."""
        self._labels: Selector = parse_label_selector(label_selector)
        self._cache = cache
        self._info = info
        self.name = ""
        """The one name that can match, "" for any. With it a list becomes a get."""
        self.namespace = ""
        self._excluded: list[FieldTerm] = []
        self._terms: list[FieldTerm] = []
        self._impossible = False
        self.shown = shown
        self._hides = hides
        for term in parse_field_selector(field_selector):
            self._add(term)
        self.matches_all = not (
            self._labels.requirements
            or self._terms
            or self._excluded
            or self.name
            or self.namespace
            or self._impossible
            or shown is not None
            or hides is not None
        )

    def _add(self, term: FieldTerm) -> None:
        if term.field == _NAME and term.equal:
            self._impossible |= bool(self.name) and self.name != term.value
            self.name = term.value
            self._impossible |= not term.value
        elif term.field == _NAMESPACE and term.equal:
            self._impossible |= bool(self.namespace) and self.namespace != term.value
            self.namespace = term.value
            self._impossible |= not term.value and self._info.resource.namespaced
        elif term.field in {_NAME, _NAMESPACE}:
            self._excluded.append(term)
        else:
            self._check_supported(term)
            self._terms.append(term)

    def _check_supported(self, term: FieldTerm) -> None:
        resource = self._info.resource
        if self._info.is_custom:
            supported = tuple(path.removeprefix(".") for path in self._info.selectable_fields)
        else:
            supported = _FIELDS.get((resource.group, resource.plural), ())
        if term.field in supported:
            return
        if resource.kind == "Job" and not self._info.is_custom:
            raise BadRequest(f'field label "{term.field}" not supported for Job')
        if supported or self._info.is_custom:
            raise BadRequest(f"field label not supported: {term.field}")
        raise BadRequest(f'"{term.field}" is not a known field selector: only "{_NAME}", "{_NAMESPACE}"')

    def matches(self, key: str, revision: int, value: bytes) -> bool:
        """Return whether the object stored under `key` as `value` is selected."""
        if self.matches_all:
            return True
        if self._impossible or not self._matches_key(key):
            return False
        if self._labels.requirements and not self._labels.matches(self._cache.labels(key, revision, value)):
            return False
        if self._terms and not self._matches_fields(encoding.decode(value)):
            return False
        return self._hides is None or not self._hides(value)

    @property
    def is_hiding(self) -> bool:
        """Whether there may be objects that the requester must not learn the names of."""
        return self.shown is not None or self._hides is not None

    def _matches_key(self, key: str) -> bool:
        namespace, _, name = key[len(self._info.prefix) :].rpartition("/")
        if self.shown is not None and name not in self.shown:
            return False
        if (self.name and name != self.name) or (self.namespace and namespace != self.namespace):
            return False
        return all((name if term.field == _NAME else namespace) != term.value for term in self._excluded)

    def _matches_fields(self, obj: Object) -> bool:
        group = self._info.resource.group
        for term in self._terms:
            source = _SOURCES.get((group, term.field))
            value = source(obj) if source and not self._info.is_custom else value_at(obj, term.field)
            if (_text(value) == term.value) != term.equal:
                return False
        return True


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
