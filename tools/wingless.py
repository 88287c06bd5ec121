"""A control plane without its wings: an import hook, as if the catalogue were emptied and their folders deleted.

`federation.features.types` stays: without FederatedTypeConfigs nothing is federated.
"""

import ast
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

_FOLDER = "federation.features."
_CATALOGUE = f"{_FOLDER}catalogue"
KEPT = "types"


class _EmptiedCatalogue(SourceFileLoader):
    """The catalogue with one feature: neither its imports nor its list name another one."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the source; what is compiled already lists all."""
        tree = ast.parse(self.get_data(self.get_filename(fullname)))
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "federation.features":
                node.names = [each for each in node.names if each.name == KEPT]
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "FEATURES":
                assert isinstance(node.value, ast.Tuple)
                node.value.elts = [each for each in node.value.elts if ast.unparse(each) == f"{KEPT}.FEATURE"]
        code: CodeType = compile(tree, self.get_filename(fullname), "exec")
        return code


class Wingless(MetaPathFinder):
    """Refuses the wings."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the emptied catalogue; ModuleNotFoundError for a wing."""
        if not fullname.startswith(_FOLDER) or fullname.removeprefix(_FOLDER).split(".")[0] == KEPT:
            return None
        if fullname != _CATALOGUE:
            raise ModuleNotFoundError(f"{fullname} is a wing, and this process has none", name=fullname)
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _EmptiedCatalogue(fullname, spec.origin)
        return spec


def install() -> None:
    """Refuse the wings from now on; RuntimeError if some are there already."""
    if _CATALOGUE in sys.modules:
        raise RuntimeError("the catalogue has been imported")
    sys.meta_path.insert(0, Wingless())
