"""The CEL engine for the retention rules of FederatedTypeConfigs (`spec.retention`).

The live set of federated types gets `retention_function`, and the admission of FederatedTypeConfigs compiles with
`compile_retention`, so a rule that is accepted is a rule that runs. A configuration that was stored without admission,
as on an existing host while its webhook was off, fails when its rule is used: the delivery reports that by object.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from federation.admission.celrules import OBJECT_FIELDS, compile_rule
from federation.api.federatedtype import FederatedType, from_config, with_engine
from federation.apiserver.semantics.cel.budget import TENANT_LIMIT
from federation.apiserver.semantics.cel.composition import Environment
from federation.planning.aggregation.rules import Evaluate

_NAMES: Final = ("template:DYN", "member:DYN", "object:MAP")
_FIELDS: Final = {"object": OBJECT_FIELDS}
_COMPILED_MAX: Final = 256


@lru_cache(_COMPILED_MAX)
def compile_retention(text: str) -> Evaluate:
    """Compile the expression of a rule to a function of `template`, `member` and `object`; both raise RuleError."""
    return compile_rule(Environment(_NAMES, _FIELDS, limit=TENANT_LIMIT, is_new=True), text)[0]


def retention_function(text: str) -> Evaluate:
    """Return the function of an expression. It compiles the expression when it is called first."""

    def run(data: Mapping[str, Any]) -> Any:
        return compile_retention(text)(data)

    return run


def parse_type(config: Mapping[str, Any]) -> FederatedType:
    """Return the federated type of a FederatedTypeConfig, with the functions of its rules; ValueError."""
    return with_engine(from_config(config), retention_function)
