"""Rules of Kubernetes that belong to the API server and that planners of OpenKruise's kinds need.

Planning does not import the API server, so callers pass these functions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.resources import Object

Rule = Callable[[Mapping[str, Any], str], Causes]
"""Returns the causes of a value at a field."""
PatchPod = Callable[[Object, Object], Object]
"""Returns a pod or pod template with a strategic merge patch merged in, without fields that pods do not have;
BadRequest, Invalid."""


@dataclass(frozen=True, slots=True)
class CoreRules:
    """The rules for the parts that subsets of both kinds have."""

    label_selector: Rule
    required_term: Rule
    toleration: Rule
