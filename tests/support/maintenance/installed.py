"""A pytest plugin: the process has a catalogue with one line more, that of the maintenance budgets."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

_CATALOGUE = "federation.features.catalogue"
_LIST = "FEATURES: tuple[Feature, ...] = (\n"


class _WithOneMore(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the source with the line; what is compiled already has none."""
        text = self.get_data(self.get_filename(fullname)).decode()
        assert text.count(_LIST) == 1
        text = text.replace(_LIST, f"from tests.support import maintenance\n{_LIST}    maintenance.FEATURE,\n")
        code: CodeType = compile(text, self.get_filename(fullname), "exec")
        return code


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the catalogue; None for all others."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname == _CATALOGUE else None
        if spec is not None and spec.origin is not None:
            spec.loader = _WithOneMore(fullname, spec.origin)
        return spec


assert _CATALOGUE not in sys.modules, "the catalogue has been imported"
sys.meta_path.insert(0, _Finder())
