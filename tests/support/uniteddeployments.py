"""UnitedDeployments for tests, and Kubernetes' own rules for parts of them."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.fielderrors import Causes
from federation.apiserver.semantics.validation.podvalidation import validate_template
from federation.apiserver.semantics.validation.selectorvalidation import (
    validate_label_selector,
    validate_node_selector,
    validate_toleration,
)
from federation.planning.uniteddeployment.unitedvalidation import CoreRules


def _node_term(term: Mapping[str, Any], field: str) -> Causes:
    prefix = ".nodeSelectorTerms[0]"
    causes = validate_node_selector({"nodeSelectorTerms": [term]}, "")
    return [{**cause, "field": field + cause["field"].removeprefix(prefix)} for cause in causes]


RULES = CoreRules(
    label_selector=validate_label_selector,
    node_term=_node_term,
    toleration=validate_toleration,
    pod_template=validate_template,
)
