"""Calls back once a module has been imported, by whomever; imports nothing itself."""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_waiting: Final[dict[str, list[Callable[[], None]]]] = {}
"""By name of the module: whom to call."""


def after_import(module_name: str, call: Callable[[], None]) -> None:
    """Call once the module has been imported; at once where it is there already.

    `call` must not raise. A module whose import fails is waited for again.
    """
    module: Any = sys.modules.get(module_name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        call()
        return
    _waiting.setdefault(module_name, []).append(call)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Has others find the module, and puts our loader around theirs."""

    def __init__(self) -> None:
        self._under_way: set[str] = set()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The spec that anybody else has for it, with a loader that calls back."""
        del path, target
        if fullname not in _waiting or fullname in self._under_way:
            return None
        self._under_way.add(fullname)
        try:
            spec = find_spec(fullname)
        finally:
            self._under_way.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _CallingLoader(spec.loader)
        return spec


class _CallingLoader(Loader):
    """Another loader, and the callbacks once it has done its work."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, with its own loader in place, and call back."""
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for call in _waiting.pop(module.__name__, ()):
            call()
