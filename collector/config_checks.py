"""What a value of a setting may be, and the error where it is something else."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_type_hints

from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Setting(NamedTuple):
    """One leaf of the configuration: what it may be, and what it is unless set."""

    path: str
    """As written in a file, with a dot: `cpu.interval_seconds`."""
    hint: Any
    default: Any
    limits: Mapping[str, Any]
    """`least`, `most`, `words`, where the type alone does not say it."""

    @property
    def accepts(self) -> tuple[Any, ...]:
        """The types of a union, the words of a Literal, or the one type."""
        return get_args(self.hint) or (self.hint,)

    @property
    def words(self) -> tuple[str, ...]:
        """The texts that are right; no setting takes free text."""
        literal = tuple(item for item in self.accepts if isinstance(item, str))
        return (*self.limits.get("words", ()), *literal)

    @property
    def expected(self) -> str:
        """What a right value is, in words."""
        names = [f"'{word}'" for word in self.words]
        if bool in self.accepts:
            names.append("true or false")
        for kind, name in ((int, "a whole number"), (float, "a number")):
            if kind in self.accepts:
                names.append(name + self._range())
        if type(None) in self.accepts:
            names.append("null")
        return " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)

    def _range(self) -> str:
        least, most = self.limits.get("least"), self.limits.get("most")
        return f" from {least} up" if most is None else f" from {least} to {most}"


def checked(setting: Setting, value: Any, place: str) -> Any:
    """The value as the field holds it.

    Raises:
        ConfigError: the value is none that `setting` admits; names key, place, remedy.
    """
    accepts = setting.accepts
    if value is False and "off" in setting.words:
        return "off"  # what YAML 1.1 makes of a bare off
    if isinstance(value, bool):
        right = bool in accepts
    elif isinstance(value, str):
        right = value in setting.words
    elif isinstance(value, (int, float)):
        least, most = setting.limits.get("least"), setting.limits.get("most")
        right = (least is None or value >= least) and (most is None or value <= most)
        if right and float in accepts:
            value = float(value)
        right = right and type(value) in accepts
    else:
        right = value is None and type(None) in accepts
    if right:
        return value
    raise ConfigError(
        f"'{setting.path}' in {place} must be {setting.expected}, got"
        f" {describe(value)}. Correct it, or remove it for the default,"
        f" {written(setting.default)}."
    )


def check_fields(instance: Any) -> None:
    """Check and normalise every field of a dataclass while it is made.

    Raises:
        ConfigError: as `checked`, or a nested dataclass is given as something else.
    """
    owner: Any = type(instance)
    place = f"{owner.__name__}()"
    for item in fields(instance):
        value = getattr(instance, item.name)
        hint = _hints(owner)[item.name]
        if isinstance(hint, type) and is_dataclass(hint):
            if isinstance(value, hint):
                continue
            raise ConfigError(
                f"'{item.name}' in {place} must be a {hint.__name__}, got"
                f" {describe(value)}. Write {item.name}={hint.__name__}(...), or use"
                " collector.config.load, which takes the short forms."
            )
        setting = Setting(item.name, hint, item.default, item.metadata)
        object.__setattr__(instance, item.name, checked(setting, value, place))


@cache
def _hints(owner: type) -> Mapping[str, Any]:
    return get_type_hints(owner)


def describe(value: Any) -> str:
    """A wrong value in words, bounded, for an error message."""
    if value is None or isinstance(value, bool):
        return written(value)
    if isinstance(value, str):
        return f"the text {value[:80]!r}"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**80):
        return f"the number {value}"
    return f"a {type(value).__name__}"


def written(value: Any) -> str:
    """A value as it would be written in a file."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
