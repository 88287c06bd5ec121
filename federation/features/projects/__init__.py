"""Projects: namespaces, clusters, quota and members of one team under one name (docs/reference/projects.md).

`planning/projects/projectindex.py` says which project a namespace belongs to, and the scheduler sees no other clusters.
`rules.py` derives what a Project makes, `reconcile.py` writes it as its author, and `admission.py` refuses what he may
not give. `projectscreen.py` shows projects in the web UI.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.admission.hostreader import HostReader
    from federation.api.v1alpha1.base import Kind
    from federation.apiserver.admission.plugins import AdmissionPlugin
    from federation.featureapi.surroundings import Surroundings
    from federation.web.ui.screen import Screen


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.projects.model import Project

    return (Project,)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.projects.controller import ProjectController

    # On another API server the control plane has one account, and would give rights that an author does not have.
    return {"projects": ProjectController(surroundings.host, gives_rights=not surroundings.has_existing_host)}


def _admission(host: "HostReader") -> Sequence["AdmissionPlugin"]:
    from federation.admission.authors import AuthorAdmission
    from federation.features.projects.admission import ProjectAdmission

    return (AuthorAdmission(ProjectAdmission(host)),)


def _screens() -> Sequence["Screen"]:
    from federation.features.projects.projectscreen import SCREENS

    return SCREENS


FEATURE = Feature(
    "projects",
    page="projects.md",
    kinds=_kinds,
    controllers=_controllers,
    admission=_admission,
    screens=_screens,
)
