"""A dataloader that tells the recorder how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Batch = TypeVar("Batch")


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
        if name == "_loader":  # not set yet, while unpickling
            raise AttributeError(name)
        return getattr(self._loader, name)


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
