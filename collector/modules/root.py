"""The tracked root: which module it is, and seeing what its forward is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from collector.errors import ConfigError
from collector.hooks.module_hooks import OwnHook
from collector.modules.watching.compiled import uncompiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.modules.tree import ModuleTree


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
    for name in path.split(".") if path else ():
        children = dict(root.named_children())
        if name not in children:
            known = ", ".join(sorted(children)[:12]) or "none"
            raise ConfigError(
                f"modules.root is {path!r}, but {type(root).__name__} has no module"
                f" {name!r}. It has: {known}."
            )
        root = uncompiled(children[name])
    found: nn.Module = root
    return found


def entries(tree: ModuleTree) -> tuple[int, ...]:
    """The modules whose forward begins a pass: the root, or each of several models.

    Several attached models are the children of a list, which has no forward itself.
    """
    if type(tree.modules[0]) is nn.ModuleList:
        return tuple(i for i, parent in enumerate(tree.parents) if parent == 0)
    return (0,)


class RootHook(OwnHook):
    """A forward pre-hook that sees keywords too; torch's global ones do not."""

    __slots__ = ("_entered",)

    def __init__(self, entered: Callable[[Any], None]) -> None:
        """`entered` is given the arguments, and must not raise."""
        self._entered = entered

    def __call__(self, _module: Any, args: Any, kwargs: Any) -> None:
        """The root is about to run with these arguments."""
        self._entered((args, kwargs))
