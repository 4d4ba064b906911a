"""What a value of a setting may be, and the error where it is something else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final, NamedTuple, get_args, get_origin

from collector.config_code import code_name, is_dotted
from collector.config_options import Options
from collector.errors import ConfigError
from collector.plain import described

_DOTTED_NAME: Final = "a dotted name (package.module.function)"
_DOTTED_NAMES: Final = "dotted names (package.module.function) or callables"


class Found(NamedTuple):
    """A value and where it stands, in words."""

    value: Any
    place: str


class Setting(NamedTuple):
    """One leaf of the configuration: what it may be, and what it is unless set."""

    path: str
    """As written in a file, with a dot: `cpu.interval_seconds`."""
    hint: Any
    default: Any
    limits: Mapping[str, Any]
    """`least`, `most`, `words`, where the type alone does not say it."""

    @property
    def many(self) -> bool:
        """Whether it is a list; `accepts` then speaks of one entry."""
        return get_origin(self.hint) is tuple

    @property
    def accepts(self) -> tuple[Any, ...]:
        """The types of a union, the words of a Literal, or the one type."""
        hint = get_args(self.hint)[0] if self.many else self.hint
        return get_args(hint) or (hint,)

    @property
    def words(self) -> tuple[str, ...]:
        """The texts that are right, where not any text is."""
        literal = tuple(item for item in self.accepts if isinstance(item, str))
        return (*self.limits.get("words", ()), *literal)

    @property
    def takes_code(self) -> bool:
        """Whether it is a callable or the dotted name of one."""
        return any(get_origin(item) is Callable for item in self.accepts)

    @property
    def takes_text(self) -> bool:
        """Whether any text is right."""
        return str in self.accepts and not self.takes_code and not self.words

    @property
    def takes_options(self) -> bool:
        """Whether it is a mapping of keys that are not ours."""
        return self.hint is Options

    @property
    def expected(self) -> str:
        """What a right value is, in words."""
        if self.many and self.words:
            return f"a list of {', '.join(self.words)}"
        if self.many:
            return f"a list of {_DOTTED_NAMES if self.takes_code else 'names'}"
        if self.takes_options:
            return "a mapping"
        names = [f"'{word}'" for word in self.words]
        if self.takes_text:
            names.append("text")
        if self.takes_code:
            names += [_DOTTED_NAME, "a callable"]
        if bool in self.accepts:
            names.append("true or false")
        for kind, name in ((int, "a whole number"), (float, "a number")):
            if kind in self.accepts:
                names.append(name + self._range())
        if type(None) in self.accepts:
            names.append("null")
        return one_of(names)

    def _range(self) -> str:
        least, most = self.limits.get("least"), self.limits.get("most")
        return f" from {least} up" if most is None else f" from {least} to {most}"


def checked(setting: Setting, value: Any, place: str) -> Any:
    """The value as the field holds it: a single entry of a list as a tuple of one.

    Raises:
        ConfigError: the value is none that `setting` admits; names key, place, remedy.
    """
    try:
        return _checked(setting, value, place)
    except ConfigError:
        raise
    except Exception as error:  # whatever a value of the user's raises when it is asked
        raise _wrong(setting, described(value), place) from error


def _checked(setting: Setting, value: Any, place: str) -> Any:
    if not setting.many:
        fits, right = _fit(setting, value)
        if fits:
            return right
        raise _wrong(setting, describe(value), place)
    entries = _entries(setting, value)
    if entries is None:
        raise _wrong(setting, describe(value), place)
    kept = []
    for entry in entries:
        fits, right = _fit(setting, entry)
        if not fits or right == "":
            raise _wrong(setting, f"{describe(entry)} in the list", place)
        if setting.takes_code or right not in kept:
            kept.append(right)
    return tuple(kept)


def _entries(setting: Setting, value: Any) -> Iterable[Any] | None:
    """The entries of a list; None where the value is nothing like one."""
    if isinstance(value, str) or (setting.takes_code and callable(value)):
        return (value,)
    if isinstance(value, AbstractSet):
        return sorted(value, key=code_name)
    return value if isinstance(value, (list, tuple)) else None


def _fit(setting: Setting, value: Any) -> tuple[bool, Any]:
    """Whether one value is right, and how it is kept."""
    accepts = setting.accepts
    if setting.takes_options:
        named = isinstance(value, Mapping) and all(isinstance(k, str) for k in value)
        return named, Options(value) if named else value
    if value is False and "off" in setting.words:
        return True, "off"  # what YAML 1.1 makes of a bare off
    if isinstance(value, bool):
        return bool in accepts, value
    if isinstance(value, os.PathLike) and setting.takes_text:
        value = os.fspath(value)
    if isinstance(value, str):
        if setting.takes_code:
            return is_dotted(value), value
        return setting.takes_text or value in setting.words, value
    if isinstance(value, (int, float)):
        least, most = setting.limits.get("least"), setting.limits.get("most")
        right = (least is None or value >= least) and (most is None or value <= most)
        if right and float in accepts:
            value = float(value)
        return right and type(value) in accepts, value
    if value is None:
        return type(None) in accepts, value
    return setting.takes_code and callable(value), value


def _wrong(setting: Setting, got: str, place: str) -> ConfigError:
    return ConfigError(
        f"'{setting.path}' in {place} must be {setting.expected}, got {got}."
        f" Correct it, or remove it for the default, {written(setting.default)}."
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
        hint = hints_of(owner)[item.name]
        if isinstance(hint, type) and is_dataclass(hint):
            if issubclass(type(value), hint):
                continue
            raise ConfigError(
                f"'{item.name}' in {place} must be a {hint.__name__}, got"
                f" {describe(value)}. Write {item.name}={hint.__name__}(...), or use"
                " collector.config.load, which takes the short forms."
            )
        setting = Setting(item.name, hint, item.default, item.metadata)
        object.__setattr__(instance, item.name, checked(setting, value, place))


@cache
def hints_of(owner: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields, by name."""
    from typing import get_type_hints

    return get_type_hints(owner)


def nearest(word: str, known: list[str]) -> str:
    """A question whether the likest of `known` was meant."""
    import difflib

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else "no key is like it."


def one_of(names: list[str]) -> str:
    """`a, b or c`."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def describe(value: Any) -> str:
    """A wrong value in words, bounded, for an error message."""
    try:
        return _describe(value)
    except Exception:  # noqa: BLE001  # a value of the user's own making
        return described(value)


def _describe(value: Any) -> str:
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
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(written(entry) for entry in value)}]"
    if isinstance(value, Mapping):  # none is but empty by default
        return "{}"
    if isinstance(value, (int, float)):
        return str(value)
    text = code_name(value)
    return text if re.fullmatch(r"[A-Za-z][\w. -]*\w", text) else json.dumps(text)
