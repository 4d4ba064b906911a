"""A setting's possible values, and the error where a value is something else.

A setting is one leaf of the structs in `settings`: its type, with the range that
`msgspec.Meta` gives, says what is right. Code is given as a dotted name or as itself.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from importlib import import_module
from itertools import islice
from types import ModuleType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

import msgspec

from memboard.collector.core.guard import Block
from memboard.collector.core.model_parts import listed
from memboard.collector.core.plain import described, forgiving
from memboard.collector.errors import ConfigError, nearest_of

Names: TypeAlias = tuple[str, ...]

Code: TypeAlias = str | Callable[..., Any]
"""A dotted name or the callable itself."""

UNCHANGED: Final = "memboard.collector.config.values.unchanged"
"""The dotted name of `unchanged`."""

ZERO_ATTRIBUTES: Final = "memboard.collector.config.values.zero_attributes"
"""The dotted name of `zero_attributes`."""

_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_DOTTED_NAME: Final = "a dotted name (package.module.function)"
_DOTTED_NAMES: Final = "dotted names (package.module.function) or callables"

_EXPONENT: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")

_MAX_OPTIONS: Final = 1000


class Options(dict[str, Any]):
    """Keys of another package; its text shows them without their values: secrets."""

    def __repr__(self) -> str:
        return f"Options({', '.join(sorted(map(str, self)))})"

    def __hash__(self) -> int:  # type: ignore[override]  # nobody changes it
        return hash(frozenset(self))


class LocatedValue(NamedTuple):
    """A value and where it stands, in words."""

    value: Any
    place: str


class Setting:
    """One leaf of the configuration: what it may be, and what it is unless set."""

    def __init__(self, path: str, hint: Any, default: Any) -> None:
        self.path = path
        """As written in a file, with a dot: `cpu.interval_seconds`."""
        self.default = default
        self.many = get_origin(hint) is tuple
        """Whether it is a list; all that follows then speaks of one entry."""
        self._hint = get_args(hint)[0] if self.many else hint
        members = dict(_members(self._hint))
        self.words = tuple(item for item in members if isinstance(item, str))
        """The texts that are right, where not any text is."""
        self.kinds = {k: v for k, v in members.items() if not isinstance(k, str)}
        """The types of a union, or the one type, each with its range."""
        self.takes_code = any(get_origin(kind) is Callable for kind in self.kinds)
        self.takes_text = str in self.kinds and not self.takes_code
        self.takes_options = Options in self.kinds

    @property
    def expected(self) -> str:
        """What a right value is, in words."""
        if self.many:
            entries = _DOTTED_NAMES if self.takes_code else "names"
            return f"a list of {', '.join(self.words) or entries}"
        names = [f"'{word}'" for word in self.words]
        names += ["text"] * self.takes_text
        names += [_DOTTED_NAME, "a callable"] * self.takes_code
        names += ["a mapping"] * self.takes_options
        names += ["true", "false"] * (bool in self.kinds)
        for kind, name in ((int, "a whole number"), (float, "a number")):
            if kind in self.kinds:
                limits = self.kinds[kind] or msgspec.Meta()
                start = "" if limits.ge is None else f" from {limits.ge}"
                end = " up" if limits.le is None else f" to {limits.le}"
                names.append(name + start + end * bool(start))
        names += ["null"] * (NoneType in self.kinds)
        return one_of(names)

    def fit(self, value: Any) -> Any:
        """One value, or one entry of a list, as it is kept.

        Raises:
            Exception: it is none that the setting takes.
        """
        if self.takes_options:
            if isinstance(value, Mapping):  # one of the user's own may have no end
                value = dict(islice(value.items(), _MAX_OPTIONS + 1))
                if len(value) > _MAX_OPTIONS:
                    raise ValueError
            return Options(msgspec.convert(value, dict[str, Any]))
        if self.takes_code:
            if is_code(value) or (value is None and NoneType in self.kinds):
                return value
            raise TypeError
        if value is False and "off" in self.words:
            return "off"  # what YAML 1.1 makes of a bare off
        if value is True and {bool, float} <= self.kinds.keys():
            return self.default
        if isinstance(value, os.PathLike) and self.takes_text:
            value = os.fspath(value)
        if isinstance(value, str) and not self.takes_text:
            value = self._number_of(value)
        if isinstance(value, float):
            value = float(value)  # numpy's floats are such, too
            if float not in self.kinds:
                raise TypeError
        kept = msgspec.convert(value, self._hint)
        if self.many and kept == "":
            raise ValueError
        return kept

    def _number_of(self, text: str) -> Any:
        """`3e14` as a number where one is expected; any other text as it is.

        To YAML 1.1, and so to PyYAML, it is text: there a number has a point and a sign.
        """
        if not {int, float} & self.kinds.keys() or not _EXPONENT.fullmatch(text):
            return text
        number = float(text)
        if float not in self.kinds and number.is_integer():
            return int(number)
        return number


def _members(hint: Any) -> Iterator[tuple[Any, msgspec.Meta | None]]:
    """The types and words that an annotation admits, each with its range."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        yield from ((kind, inner[1]) for kind, _ in _members(inner[0]))
    elif origin in (Union, UnionType):
        for member in inner:
            yield from _members(member)
    else:
        yield from dict.fromkeys(inner if origin is Literal else [hint]).items()


def checked(setting: Setting, value: Any, place: str) -> Any:
    """The value as the field holds it: a single entry of a list as a tuple of one.

    Raises:
        ConfigError: the value is none that `setting` admits; names key, place, remedy.
    """
    entry, rest = value, ""
    wrong: list[BaseException] = []
    with Block(wrong.append):  # whatever a value of the user's raises when it is asked
        if not setting.many:
            return setting.fit(value)
        kept: list[Any] = []
        for entry in _entries(setting, value):  # the wrong one is named
            rest = " in the list"
            right = setting.fit(entry)
            if setting.takes_code or right not in kept:
                kept.append(right)
        return tuple(kept)
    raise ConfigError(
        f"'{setting.path}' in {place} must be {setting.expected}, got"
        f" {describe(entry)}{rest}. Correct it, or remove it for the default,"
        f" {written(setting.default)}."
    ) from wrong[0]


def _entries(setting: Setting, value: Any) -> Iterable[Any]:
    if isinstance(value, str) or (setting.takes_code and callable(value)):
        return (value,)
    if isinstance(value, AbstractSet):
        some = sorted(islice(value, _MAX_OPTIONS + 1), key=code_name)
        if len(some) > _MAX_OPTIONS:  # one of the user's own may have no end
            raise ValueError
        return some
    if isinstance(value, (list, tuple)):
        return value
    raise TypeError


def one_of(names: list[str]) -> str:
    # `a, b or c`
    return " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def describe(value: Any) -> str:
    """A wrong value in words, bounded, for an error message."""
    with forgiving:  # a value of the user's own making
        if value is None or isinstance(value, bool):
            return written(value)
        if isinstance(value, str):
            return f"the text {value[:80]!r}"
        if isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**80):
            return f"the number {value}"
        return f"a {type(value).__name__}"
    return described(value)


def written(value: Any) -> str:
    """A value as it would be written in a file."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(written(entry) for entry in value)}]"
    if isinstance(value, Options):
        return "{}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {written(v)}' for k, v in value.items())}}}"
    if isinstance(value, (int, float)):
        return str(value)
    text = code_name(value)
    return text if re.fullmatch(r"[A-Za-z][\w. -]*\w", text) else json.dumps(text)


# Code that a setting names.


def unchanged(value: Any) -> Any:
    """Return what is given: a pack or unpack function that does nothing."""
    return value


def zero_attributes(model: Any, names: Iterable[str]) -> None:
    """Set attributes of every module to 0: a reset hook that does what MemProfiler's does."""
    for module in listed(model, "modules"):
        for attribute in names:
            setattr(module, attribute, 0)


def is_code(value: Any) -> bool:
    """Whether a value is code: callable, or written like the name of a callable."""
    return is_dotted(value) if isinstance(value, str) else callable(value)


def is_dotted(text: str) -> bool:
    """Whether `text` is written like `package.module.function`."""
    return _DOTTED.fullmatch(text) is not None


def code_name(code: Any) -> str:
    """The dotted name of a callable; where it has none, what it is, in `<>`.

    A lambda or an inner function has `<lambda>` or `<locals>` in its name: it can be
    recorded so, but not imported again.
    """
    if isinstance(code, str):
        return code
    owner = getattr(code, "__module__", None)
    function_name = getattr(code, "__qualname__", None)
    if isinstance(owner, str) and isinstance(function_name, str):
        return f"{owner}.{function_name}"
    return f"<{type(code).__module__}.{type(code).__qualname__}>"


def can_be_imported(dotted_name: str) -> bool:
    """Whether another process can import what `code_name` gave."""
    return is_dotted(dotted_name) and not dotted_name.startswith("__main__.")


def resolve(code: Code, path: str) -> Callable[..., Any]:
    """The callable that a setting names, its module imported where it must be.

    Args:
        code: a dotted name, or the callable itself.
        path: the setting's key, for the error.

    Raises:
        ConfigError: the module does not import, the name is not in it, or it cannot be
            called; names the key and the remedy.
    """
    if callable(code):
        return code
    target = _imported(code, path)
    if callable(target):
        return target  # type: ignore[no-any-return]  # nothing is known of it but this
    raise ConfigError(
        f"'{path}' names {code}, which is a {type(target).__name__} and cannot be"
        " called. Name a function."
    )


def _imported(dotted_name: str, path: str) -> Any:
    """What a dotted name leads to: modules as far as there are, then attributes."""
    parts = dotted_name.split(".")
    target: Any = _module(parts[0], dotted_name, path)
    for end in range(1, len(parts)):
        owner, part = ".".join(parts[:end]), parts[end]
        if isinstance(target, ModuleType) and not hasattr(target, part):
            _module(f"{owner}.{part}", dotted_name, path)
        try:
            target = getattr(target, part)
        except AttributeError:
            near = nearest_of(part, dir(target), 0.6)
            like = f" Did you mean '{near}'?" if near else ""
            raise ConfigError(
                f"'{path}' names {dotted_name}, but {owner} has no '{part}'."
                f"{like} Correct the name, or remove it."
            ) from None
    return target


def _module(module: str, dotted_name: str, path: str) -> Any:
    """Import one module; None where a package that is there has none of this name."""
    wrong: list[BaseException] = []
    try:
        with Block(wrong.append):
            return import_module(module)
    except SystemExit as error:
        wrong.append(error)
    why = wrong[0]
    missing = isinstance(why, ModuleNotFoundError) and why.name == module
    if missing and "." in module:
        return None  # its absence is told as that of an attribute, with its likes
    reason = f"{type(why).__name__}: {why}".splitlines()[0][:200]
    raise ConfigError(
        f"'{path}' names {dotted_name}, which cannot be imported ({reason}). Install its"
        " package or put its folder on PYTHONPATH, or correct the name."
    ) from why
