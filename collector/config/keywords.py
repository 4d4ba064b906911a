"""Unknown keywords of settings' classes are refused as unknown keys of a file are."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import msgspec

from memboard.collector.errors import ConfigError, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def _refuse_unknown(
    owner: type, names: Collection[str], passed: Collection[str]
) -> None:
    for keyword in passed:
        if keyword in names:
            continue
        owners = list(_structs_with(keyword))
        hint = nearest(keyword, names)
        if len(owners) == 1:
            hint = f"{owners[0]}({keyword}=...) takes it."
        raise ConfigError(
            f"unknown keyword '{keyword}' in {owner.__name__}(): {hint} Rename it or remove"
            f" it; known are {', '.join(names)}."
        )


def _structs_with(
    field: str, base: type[msgspec.Struct] = msgspec.Struct
) -> Iterator[str]:
    """Names of the settings' structs that have this field, below a base class."""
    for struct in base.__subclasses__():
        if isinstance(struct, StructKeywords) and field in struct.__struct_fields__:
            yield struct.__name__
        yield from _structs_with(field, struct)


class StructKeywords(msgspec.StructMeta):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Make one.

        Raises:
            ConfigError: a keyword is unknown.
        """
        _refuse_unknown(cls, cls.__struct_fields__, kwargs)
        return super().__call__(*args, **kwargs)


class InitKeywords(type):
    """Of classes with an `__init__`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make one.

        Raises:
            ConfigError: a keyword is unknown.
        """
        if kwargs:
            _refuse_unknown(cls, list(cls.__signature__.parameters), kwargs)
        return super().__call__(*args, **kwargs)

    @property
    def __signature__(cls) -> inspect.Signature:
        """What `__init__` takes: else tools would show what `__call__` does."""
        whole = inspect.signature(cls.__init__)  # type: ignore[misc]  # its own
        return whole.replace(parameters=list(whole.parameters.values())[1:])
