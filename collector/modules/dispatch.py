"""Seeing every storage that an operator returns.

A dispatch mode is called for each operator of the thread, and of autograd's threads
when they work for it. What it adds to an operator is one look-up per returned tensor.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.utils import _python_dispatch as modes
from torch.utils._python_dispatch import TorchDispatchMode

from memboard.collector.core.plain import PROGRAM_ENDS
from memboard.collector.modules.tensors import tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from memboard.collector.modules.ledger import Ledger
    from memboard.collector.modules.stack import Link

_Tensor: Final = torch.Tensor

_left_to_subclass: Final[dict[type, bool]] = {}


class StorageWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes what operators return, for as long as it has a ledger."""

    # A higher-order operator would refuse to run below a mode that does not say this.
    supports_higher_order_operators = True

    def __init__(self, ledger: Ledger, link: Link) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ledger: Ledger | None = ledger
        self.reducing: Callable[[Any, Any], None] | None = None
        """Shown the operators and arguments of a gradient reduction."""
        self._link = link
        self._fake_mode = _active_fake_mode()
        self._imitated = None if self._fake_mode is None else _wait_tensor()

    def enter(self) -> None:
        """See this thread's operators from now on; `remove` ends it."""
        _let_higher_order_operators_run()
        self.__enter__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the operator and note what it returned."""
        if types and _must_unfold(types):
            return NotImplemented  # the subclass runs it on what it is made of
        result = func(*args, **kwargs) if kwargs else func(*args)
        ledger = self.ledger
        if ledger is None:
            return result
        try:
            if func is self._imitated:
                result = args[0]  # the imitation makes a new tensor, the real one none
            if type(result) is _Tensor:
                ledger.see(result)
            elif result is not None:
                self._see_others(ledger, result)
            if self.reducing is not None:
                self.reducing(func, args)
        except PROGRAM_ENDS:
            raise
        except BaseException as error:  # noqa: BLE001  # the operator has succeeded
            self._link.call(self._see_parts, ledger, result, error)
        return result

    def _see_others(self, ledger: Ledger, result: Any) -> None:
        if isinstance(result, _Tensor):
            # Shapes are tried out on tensors of a fake mode that was not there before.
            if getattr(result, "fake_mode", None) is self._fake_mode:
                ledger.see_any(result)
        elif isinstance(result, (list, tuple)):
            for item in result:
                if type(item) is _Tensor:
                    ledger.see(item)
                elif item is not None:
                    self._see_others(ledger, item)

    def _see_parts(self, ledger: Ledger, result: Any, error: BaseException) -> None:
        """A sparse tensor among them has no storage of its own; all else is a failure."""
        if not isinstance(error, (NotImplementedError, RuntimeError)):
            raise error
        for tensor in tensors_in(result):
            ledger.see_any(tensor)


def is_watching() -> bool:
    """Whether a `StorageWatch` is on this thread's stack of modes."""
    return any(isinstance(mode, StorageWatch) for mode in _modes_here())


def remove(mode: TorchDispatchMode) -> bool:
    """Take a mode off this thread's stack, also from below modes entered since.

    False where it is not on the stack: it was entered on another thread.
    """
    above: list[Any] = []
    if not any(entered is mode for entered in _modes_here()):
        return False
    while (top := modes._pop_mode()) is not mode:  # noqa: SLF001
        above.append(top)
    modes._push_mode(mode)  # noqa: SLF001
    if above:
        _bequeath_flags(mode, above[-1])
    mode.__exit__(None, None, None)
    for entered in reversed(above):
        modes._push_mode(entered)  # noqa: SLF001
    return True


def _modes_here() -> list[Any]:
    return [
        torch._C._get_dispatch_stack_at(i)  # noqa: SLF001
        for i in range(torch._C._len_torch_dispatch_stack())  # noqa: SLF001
    ]


def _bequeath_flags(mode: TorchDispatchMode, above: TorchDispatchMode) -> None:
    """Swap what two modes put back when they leave.

    Each puts back the flags that stood when it was entered. The one that stays would
    put back that a mode was active, and torch.compile would never compile again.
    """
    for attribute, flags in vars(mode).items():
        others = vars(above).get(attribute)
        if attribute.startswith("old_") and flags and others:
            flags[-1], others[-1] = others[-1], flags[-1]


def _let_higher_order_operators_run() -> None:
    """Give an older torch's higher-order operators the rule by which they run below us.

    That torch does not ask for `supports_higher_order_operators`: an operator without a
    rule for `StorageWatch` would raise in the user's training.
    """
    if hasattr(TorchDispatchMode, "supports_higher_order_operators"):
        return
    for operator in torch._ops._higher_order_ops.values():  # noqa: SLF001
        if StorageWatch not in operator.python_key_table:
            operator.py_impl(StorageWatch)(partial(_run_below, operator))


def _run_below(operator: Any, watch: StorageWatch, *args: Any, **kwargs: Any) -> Any:
    return watch.__torch_dispatch__(operator, (), args, kwargs)


def _must_unfold(types: Iterable[type]) -> bool:
    for kind in types:
        is_left = _left_to_subclass.get(kind)
        if is_left is None:
            is_left = _left_to_subclass[kind] = any(
                base.__name__ == "DTensor"
                and base.__module__.startswith("torch.distributed")
                for base in kind.__mro__
            )
        if is_left:
            return True
    return False


def _wait_tensor() -> Any:
    try:
        return torch.ops._c10d_functional.wait_tensor.default  # noqa: SLF001
    except AttributeError:
        return None  # a torch without torch.distributed


def _active_fake_mode() -> Any:
    try:
        from torch._guards import active_fake_mode
    except ImportError:
        return None
    return active_fake_mode()
