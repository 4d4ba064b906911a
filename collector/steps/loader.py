"""A dataloader that tells the recorder how far it is, and how long one waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memboard.collector.core.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from memboard.collector.recording import Recording

Batch = TypeVar("Batch")

_OWN = frozenset({"_loader", "_sink"})


class RecordedLoader(Generic[Batch]):
    """Iterates like the loader it wraps, and tells; all else is the loader's own."""

    def __init__(self, loader: Iterable[Batch], sink: Recording) -> None:
        self._loader = loader
        self._sink = sink

    def __iter__(self) -> Iterator[Batch]:
        sink = self._sink
        # To begin may take long as well: workers are started.
        begun = sink.begin_batch(self._loader)
        try:
            iterator = iter(self._loader)
        finally:
            sink.end_batch(begun, has_come=False)
        while True:
            try:
                batch = _next(iterator, sink)
            except StopIteration:
                return
            yield batch

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]  # as the loader does or not

    def __getattr__(self, name: str) -> Any:
        if name in _OWN:  # not set yet, while unpickling
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self._loader, name, value)

    # Written out, or pickling would take the loader's own.

    def __getstate__(self) -> Any:
        return self.__dict__

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)


class RecordedIterator(RecordedLoader[Batch]):
    """Of what is an iterator itself: `next` works on it too."""

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        return _next(self._loader, self._sink)  # type: ignore[arg-type]  # it is one


def _next(iterator: Iterator[Batch], sink: Recording) -> Batch:
    begun = sink.begin_batch(iterator)
    has_come = False
    try:
        batch = next(iterator)
        has_come = True
    finally:
        sink.end_batch(begun, has_come=has_come)
    return batch


def recorded(loader: Iterable[Batch], sink: Recording) -> RecordedLoader[Batch]:
    """The loader, wrapped; `sink` is told of each batch."""
    # Of the type, as iterating itself does: an instance may answer anything.
    wrap = RecordedIterator if hasattr(type(loader), "__next__") else RecordedLoader
    return wrap(loader, sink)


def describe(loader: Any) -> dict[str, Any]:
    """What a note says about a loader; None where it does not say."""
    return {
        "type": type(loader).__name__,
        "length": _asked(lambda: len(loader)),
        "num_workers": _asked(lambda: loader.num_workers),
        "prefetch_factor": _asked(lambda: loader.prefetch_factor),
        "pin_memory": _asked(lambda: loader.pin_memory),
    }


@guarded(lambda *_: None)
def _asked(ask: Callable[[], Any]) -> int | bool | None:
    value = ask()
    return value if type(value) in (int, bool) else None
