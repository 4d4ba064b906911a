"""A dataloader that tells the recorder how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Batch = TypeVar("Batch")

_OWN = frozenset({"_loader", "_count"})


class RecordedLoader(Generic[Batch]):
    """Iterates like the loader it wraps, and counts; all else is the loader's own."""

    def __init__(self, loader: Iterable[Batch], count: Callable[[], None]) -> None:
        self._loader = loader
        self._count = count

    def __iter__(self) -> Iterator[Batch]:
        count = self._count
        for batch in self._loader:
            count()
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
        batch: Batch = next(self._loader)  # type: ignore[call-overload]
        self._count()
        return batch


def recorded(
    loader: Iterable[Batch], count: Callable[[], None]
) -> RecordedLoader[Batch]:
    """The loader, wrapped; `count` is called for each batch."""
    wrap = RecordedIterator if hasattr(loader, "__next__") else RecordedLoader
    return wrap(loader, count)


def describe(loader: Any) -> dict[str, Any]:
    """What a note says about a loader; None where it does not say."""
    try:
        length: int | None = len(loader)
    except (TypeError, NotImplementedError):
        length = None
    return {
        "type": type(loader).__name__,
        "length": length,
        "num_workers": _plain(getattr(loader, "num_workers", None)),
        "prefetch_factor": _plain(getattr(loader, "prefetch_factor", None)),
        "pin_memory": _plain(getattr(loader, "pin_memory", None)),
    }


def _plain(value: Any) -> int | bool | None:
    return value if isinstance(value, int) else None
