"""Seeing storages that are resized in place: how FSDP frees what it gathered.

No operator runs there, so `torch.UntypedStorage.resize_` is wrapped while a ledger
listens. One wrapper serves all ledgers of the process, and what was on the class before
is put back with the last; a wrapper that somebody has wrapped since stays, idle.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import torch

from collector.core.process_lock import ProcessLock

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME: Final = "resize_"

_lock: Final = ProcessLock()
_listeners: list[Callable[[torch.UntypedStorage], None]] = []
_own: tuple[Any, Any] | None = None
"""Our wrapper and what stood on the class itself; its base class has the method."""

_INHERITED: Final = object()


def listen(listener: Callable[[torch.UntypedStorage], None]) -> None:
    """Call `listener` with each storage that was resized; it must not raise."""
    with _lock.now:
        _listeners.append(listener)
        if len(_listeners) == 1:
            _wrap()


def leave(listener: Callable[[torch.UntypedStorage], None]) -> None:
    """Stop calling it; more than once is harmless."""
    with _lock.now:
        if listener in _listeners:
            _listeners.remove(listener)
        if not _listeners:
            _unwrap()


def _wrap() -> None:
    global _own  # noqa: PLW0603  # the class is one for the process, so is its wrapper
    if _own is not None:
        return  # somebody wrapped ours: it is still in use
    held = vars(torch.UntypedStorage).get(_NAME, _INHERITED)
    before = getattr(torch.UntypedStorage, _NAME)

    @functools.wraps(before)
    def resize_(storage: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        result = before(storage, *args, **kwargs)
        for listener in tuple(_listeners):
            listener(storage)
        return result

    setattr(torch.UntypedStorage, _NAME, resize_)
    _own = (resize_, held)


def _unwrap() -> None:
    global _own  # noqa: PLW0603  # as above
    if _own is None:
        return
    wrapper, held = _own
    if vars(torch.UntypedStorage).get(_NAME) is not wrapper:
        return
    if held is _INHERITED:
        delattr(torch.UntypedStorage, _NAME)
    else:
        setattr(torch.UntypedStorage, _NAME, held)
    _own = None
