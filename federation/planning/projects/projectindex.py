"""Projects: the clusters that the objects of a namespace may be in. Pure.

A Project names its namespaces, so that nobody who may label or create a namespace moves it into a project. A namespace
belongs to one project: of several that name it, the oldest has it. One without a project may be in all clusters.

Reference: docs/reference/projects.md.
Decision: docs/decisions/0155-a-project-names-its-namespaces.md
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.resources import NAMESPACES
from federation.apimachinery.selectors import NOTHING, Selector, SelectorError, compile_label_selector


@dataclass(frozen=True, slots=True)
class Project:
    """A compiled Project. `age` orders projects that name the same namespace."""

    name: str
    namespaces: frozenset[str]
    cluster_names: frozenset[str]
    selector: Selector
    age: tuple[str, str]

    def has(self, cluster: str, labels: Mapping[str, str]) -> bool:
        """Return whether a cluster belongs to the project."""
        return cluster in self.cluster_names or self.selector.matches(labels)


def compile_project(source: Mapping[str, Any]) -> Project:
    """Return a Project; a selector that cannot be read selects no cluster."""
    metadata, spec = source["metadata"], source.get("spec") or {}
    clusters = spec.get("clusters") or {}
    try:
        selector = compile_label_selector(clusters.get("selector"))
    except SelectorError:
        selector = NOTHING
    name = str(metadata["name"])
    return Project(
        name,
        frozenset(map(str, spec.get("namespaces") or ())),
        frozenset(map(str, clusters.get("names") or ())),
        selector,
        (str(metadata.get("creationTimestamp") or ""), name),
    )


class ProjectIndex:
    """All projects, and the one that each namespace belongs to."""

    def __init__(self, sources: Iterable[Mapping[str, Any]] = ()) -> None:
        self._projects: dict[str, Project] = {}
        self._claims: dict[str, dict[str, Project]] = {}
        """The projects that name a namespace, by their names: nearly always one."""
        for source in sources:
            self.put(source)

    def __len__(self) -> int:
        return len(self._projects)

    def put(self, source: Mapping[str, Any]) -> frozenset[str]:
        """Add or replace a Project; return the namespaces whose clusters may have changed."""
        project = compile_project(source)
        old = self._projects.get(project.name)
        if old == project:
            return frozenset()
        namespaces = self.remove(project.name) | project.namespaces
        self._projects[project.name] = project
        for namespace in project.namespaces:
            self._claims.setdefault(namespace, {})[project.name] = project
        return namespaces

    def remove(self, name: str) -> frozenset[str]:
        """Remove a deleted Project; return the namespaces whose clusters may have changed."""
        old = self._projects.pop(name, None)
        if old is None:
            return frozenset()
        for namespace in old.namespaces:
            claims = self._claims[namespace]
            del claims[name]
            if not claims:
                del self._claims[namespace]
        return old.namespaces

    def get(self, name: str) -> Project | None:
        """Return a project by its name."""
        return self._projects.get(name)

    def of(self, namespace: str) -> Project | None:
        """Return the project of a namespace, None for one that may be in all clusters."""
        claims = self._claims.get(namespace)
        return min(claims.values(), key=_age) if claims else None


def namespace_of(federated: Mapping[str, Any]) -> str:
    """Return the namespace whose project limits a federated object, "" for none; a Namespace is in itself."""
    metadata = federated["metadata"]
    if namespace := metadata.get("namespace"):
        return str(namespace)
    template = (federated.get("spec") or {}).get("template") or {}
    is_namespace = (template.get("apiVersion"), template.get("kind")) == (NAMESPACES.api_version, NAMESPACES.kind)
    return str((template.get("metadata") or {}).get("name") or "") if is_namespace else ""


def _age(project: Project) -> tuple[str, str]:
    return project.age
