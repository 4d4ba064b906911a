"""The modules below the tracked root, numbered once per window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.nn.parameter import is_lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch
    from torch import nn


class ModuleTree:
    """Modules in pre-order: the root is 0, what is below a module follows it.

    A module that stands in several places is listed at the first one.
    """

    def __init__(self, root: nn.Module) -> None:
        self.modules: list[nn.Module] = []
        self.paths: list[str] = []
        self.parents: list[int] = []
        self.last: list[int] = []
        """By module: the last one below it, or itself."""
        self.index: dict[int, int] = {}
        """Number by `id` of the module; the list keeps modules, so ids stay theirs."""
        self._collect(root)
        self.root_name = type(root).__name__

    def __len__(self) -> int:
        return len(self.modules)

    def fqn(self, index: int) -> str:
        """Class of the root and path: as torch's trackers name modules."""
        path = self.paths[index]
        return f"{self.root_name}.{path}" if path else self.root_name

    def parameters(self) -> Iterator[tuple[int, torch.nn.Parameter]]:
        """Every parameter with the first module that holds it.

        Not those of lazy modules, which have no bytes before the first forward.
        """
        seen = set()
        for index, module in enumerate(self.modules):
            for parameter in module.parameters(recurse=False):
                if id(parameter) not in seen and not is_lazy(parameter):
                    seen.add(id(parameter))
                    yield index, parameter

    def buffers(self) -> Iterator[tuple[int, torch.Tensor]]:
        """Every buffer with the first module that holds it."""
        seen = set()
        for index, module in enumerate(self.modules):
            for buffer in module.buffers(recurse=False):
                if id(buffer) not in seen and not is_lazy(buffer):
                    seen.add(id(buffer))
                    yield index, buffer

    def _collect(self, root: nn.Module) -> None:
        pending: list[tuple[Any, str, int]] = [(root, "", -1)]
        while pending:
            module, path, parent = pending.pop()
            if id(module) in self.index:
                continue
            index = self.index[id(module)] = len(self.modules)
            self.modules.append(module)
            self.paths.append(path)
            self.parents.append(parent)
            prefix = f"{path}." if path else ""
            pending.extend(
                (child, prefix + name, index)
                for name, child in reversed(tuple(module.named_children()))
            )
        self.last = list(range(len(self.modules)))
        for index in range(len(self.modules) - 1, 0, -1):
            parent = self.parents[index]
            self.last[parent] = max(self.last[parent], self.last[index])
