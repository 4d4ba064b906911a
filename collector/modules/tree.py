"""The modules below the tracked root, numbered once per window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from memboard.collector.core.compiling import uncompiled
from memboard.collector.core.model_parts import listed, named_modules
from memboard.collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch


def find_root(model: Any, path: str) -> nn.Module:
    """The module that `modules.root` names, below the model.

    Raises:
        ConfigError: there is none, or the model is no module at all.
    """
    root = uncompiled(model)
    if not callable(getattr(root, "named_modules", None)):
        raise ConfigError(
            f"modules tracks a torch.nn.Module, not a {type(root).__name__}. Attach the"
            " module itself."
        )
    for child in path.split(".") if path else ():
        children = dict(listed(root, "named_children"))
        if child not in children:
            child_names = ", ".join(sorted(children)[:12]) or "none"
            raise ConfigError(
                f"modules.root is {path!r}, but {type(root).__name__} has no module"
                f" {child!r}. It has: {child_names}."
            )
        root = uncompiled(children[child])
    module: nn.Module = root
    return module


class ModuleTree:
    """Modules in pre-order: the root is 0, what is below a module follows it.

    A module that stands in several places is listed at the first one.
    """

    def __init__(self, root: nn.Module) -> None:
        module_by_path = dict(named_modules(root))
        self.paths = list(module_by_path)
        self.modules = list(module_by_path.values())
        self.root_name = type(root).__name__
        numbers = {path: index for index, path in enumerate(self.paths)}
        self.parents = [numbers.get(path.rpartition(".")[0], 0) for path in self.paths]
        self.parents[0] = -1
        self.last = list(range(len(self.paths)))
        """By module: the last one below it, or itself."""
        for index in range(len(self.paths) - 1, 0, -1):
            parent = self.parents[index]
            self.last[parent] = max(self.last[parent], self.last[index])
        self.index = {id(module): index for index, module in enumerate(self.modules)}
        """Number by `id` of the module; the list keeps modules, so ids stay theirs."""

    def __len__(self) -> int:
        return len(self.modules)

    @property
    def entries(self) -> tuple[int, ...]:
        """The modules whose forward begins a pass: the root, or each of several models.

        Several attached models are the children of a list, which has no forward itself.
        """
        if type(self.modules[0]) is nn.ModuleList:
            return tuple(i for i, parent in enumerate(self.parents) if parent == 0)
        return (0,)

    def fqn(self, index: int) -> str:
        """Class of the root and path: as torch's trackers name modules."""
        path = self.paths[index]
        return f"{self.root_name}.{path}" if path else self.root_name

    def parameters(self) -> Iterator[tuple[int, nn.Parameter]]:
        """Every parameter with the first module that holds it."""
        return self._first_holders("parameters")

    def buffers(self) -> Iterator[tuple[int, torch.Tensor]]:
        """Every buffer with the first module that holds it."""
        return self._first_holders("buffers")

    def _first_holders(self, method: str) -> Iterator[tuple[int, Any]]:
        seen = set()
        for index, module in enumerate(self.modules):
            for tensor in listed(module, method, recurse=False):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield index, tensor
