"""The size of what a pickle made, checked before anybody walks it."""

from __future__ import annotations

from typing import Any, Final

from memboard.tb_plugin.worker.errors import RefusedError

MAX_VALUES: Final = 20_000_000
"""Entries of a snapshot without its events, each counted as often as it is referred to."""
MAX_DEPTH: Final = 64
_CONTAINERS: Final = (dict, list, tuple)


class Extent:
    """Checks values that live on: each container is looked at once."""

    def __init__(self, most: int = MAX_VALUES) -> None:
        self._most = most
        self._sizes: dict[int, int] = {}
        self._flat: dict[int, bool] = {}
        """By id of frames and of lists of them: whether there are but scalars in them."""

    def check(self, value: Any, offset: int = 0) -> None:
        """Refuse what is nested too deep, holds itself, or is too much when walked.

        Raises:
            RefusedError: at this offset.
        """
        sizes, under_way = self._sizes, set[int]()
        stack = [(value, False)]
        while stack:
            value, done = stack.pop()
            children = self._children(value)
            if children is None or (not done and id(value) in sizes):
                continue
            if done:
                under_way.discard(id(value))
                sizes[id(value)] = 1 + sum(
                    sizes.get(id(child), 1) for child in children
                )
                if sizes[id(value)] > self._most:
                    raise RefusedError(
                        "the file stands for far more than it holds", offset
                    )
                continue
            if id(value) in under_way:
                raise RefusedError("the file holds something that holds itself", offset)
            if len(under_way) > MAX_DEPTH:
                raise RefusedError("lists and dicts are nested too deep", offset)
            under_way.add(id(value))
            stack.append((value, True))
            stack.extend((child, False) for child in children)

    def _children(self, value: Any) -> Any:
        """What a container holds; None where it is none."""
        if type(value) is dict:
            # Stacks are shared by design; what is flat is walked once each.
            return [
                child
                for key, child in value.items()
                if not (key == "frames" and self._are_flat(child))
            ]
        return value if type(value) in (list, tuple) else None

    def _are_flat(self, frames: Any) -> bool:
        is_flat = self._flat.get(id(frames))
        if is_flat is None:
            is_flat = type(frames) is list and all(map(self._is_flat, frames))
            self._flat[id(frames)] = is_flat
        return is_flat

    def _is_flat(self, frame: Any) -> bool:
        is_flat = self._flat.get(id(frame))
        if is_flat is None:
            is_flat = type(frame) is dict and not any(
                type(value) in _CONTAINERS for value in frame.values()
            )
            self._flat[id(frame)] = is_flat
        return is_flat


def is_container(value: Any) -> bool:
    """Whether there is anything in it to walk."""
    return type(value) in _CONTAINERS
