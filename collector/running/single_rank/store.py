"""The stores of one rank whose other ranks do not run.

A store holds keys and values for all ranks of a job; this one is of one process. A rank that
asks for what another would have put there is given, in this order: what a rank that ran
before has put there; what this rank has put under a key that differs by a number alone, for
all are taken to agree; where the program itself asks, what rank 0 puts there, which is run
for it. torch itself is given zeros else: ids of communicators, which nobody reads.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlparse

from memboard.collector.running.single_rank.calls import CallError
from memboard.collector.running.value_reads import is_library

if TYPE_CHECKING:
    from memboard.collector.running.single_rank.calls import Absences, Files

_ID_BYTES: Final = 128
"""Of the id that rank 0 gives a communicator of NCCL."""
_LAST_NUMBER: Final = re.compile(r"\d+(?=\D*$)")
_FIRST: Final = 0
"""The rank that puts what others ask for."""


class _Content:
    """Of one place, whatever objects look at it."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.counted: set[str] = set()
        """Keys that were only added to."""
        self.stores: list[Any] = []
        self.lock = threading.RLock()


class Stores:
    def __init__(self, c10d: Any, mail: Files, absences: Absences) -> None:
        """`absences`: are told of keys that nobody has put anywhere."""
        self._mail = mail
        self._absences = absences
        self._contents: dict[str, _Content] = {}
        self._kind = _store_class(c10d.Store)

    def met(self, url: str) -> Any:
        """The store of a rendezvous."""
        parts = urlparse(url)
        if parts.scheme == "file":
            return self._at(_of_file(parts.path))
        if parts.scheme == "env":
            return self._at(_of_port(int(os.environ.get("MASTER_PORT", "0"))))
        return self._at(_of_port(parts.port or 0))

    def install(self, *modules: Any) -> None:
        """Have stores that the program makes itself wait for nobody either."""
        stores = self

        class TCPStore(self._kind):  # type: ignore[misc,name-defined]
            """By the port: the host is a name of this one or of another."""

            def __init__(
                self, host_name: str, port: int = 0, *_: Any, **__: Any
            ) -> None:
                super().__init__(*stores.content(_of_port(port)))
                self.host, self.port = host_name, port

        class FileStore(self._kind):  # type: ignore[misc,name-defined]
            """By the file's name: nothing is written to it."""

            def __init__(self, file_name: str, *_: Any, **__: Any) -> None:
                super().__init__(*stores.content(_of_file(file_name)))
                self.path = file_name

        for module in modules:
            module.TCPStore, module.FileStore = TCPStore, FileStore

    def content(self, place: str) -> tuple[_Content, str, Files, Absences]:
        """What a store needs to know."""
        content = self._contents.setdefault(place, _Content())
        return content, place, self._mail, self._absences

    def _at(self, place: str) -> Any:
        return self._kind(*self.content(place))


def _of_port(port: int) -> str:
    # With none given the system chooses one, each time another.
    return f"tcp/{port}" if port else f"tcp/new-{os.getpid()}-{next(_numbers)}"


def _of_file(path: str) -> str:
    return f"file/{os.path.abspath(path)}"  # noqa: PTH100  # a text


_numbers: Final = count()


def _store_class(base: Any) -> Any:
    class LoneStore(base):  # type: ignore[misc]
        """Keys and values; what another rank would put is made up."""

        def __init__(
            self, content: _Content, place: str, mail: Files, absences: Absences
        ) -> None:
            super().__init__()
            self._values, self._counted = content.values, content.counted
            self._lock = content.lock
            self._place, self._mail, self._absences = place, mail, absences
            # torch keeps its own half alone, which then answers nothing.
            content.stores.append(self)

        def set(self, key: str, value: Any) -> None:
            with self._lock:
                self._values[key] = _bytes_of(value)
                self._counted.discard(key)
            self._mail.put(self._name(key), _bytes_of(value))

        def get(self, key: str) -> bytes:
            asks = _program_asks()
            value = self._found(key, called=asks)
            if value is None:
                if asks:
                    self._say(key)
                return bytes(_ID_BYTES)
            if asks and key in self._counted:
                # Everybody has added as much.
                return str(int(value) * _world_size()).encode()
            return value

        def add(self, key: str, amount: int) -> int:
            with self._lock:
                if key not in self._values:
                    self._counted.add(key)
                total = int(self._values.get(key, b"0")) + amount
                self._values[key] = str(total).encode()
            return total

        def append(self, key: str, value: Any) -> None:
            with self._lock:
                self._values[key] = self._values.get(key, b"") + _bytes_of(value)

        def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
            with self._lock:
                now = self._values.get(key)
                if now is None:
                    now = self._mail.get(self._name(key))
                if (now or b"") == _bytes_of(expected):
                    now = _bytes_of(desired)
                    self.set(key, now)
                return now or b""

        def multi_get(self, keys: list[str]) -> list[bytes]:
            return [self.get(key) for key in keys]

        def multi_set(self, keys: list[str], values: list[Any]) -> None:
            for key, value in zip(keys, values, strict=True):
                self.set(key, value)

        def delete_key(self, key: str) -> bool:
            with self._lock:
                return self._values.pop(key, None) is not None

        def check(self, keys: list[str]) -> bool:
            """For torch only of what this rank has put: it signals errors by keys."""
            if _program_asks():
                return all(self._found(key, called=True) is not None for key in keys)
            with self._lock:
                return all(key in self._values for key in keys)

        def wait(self, *_: Any) -> None: ...

        def num_keys(self) -> int:
            return len(self._values)

        def has_extended_api(self) -> bool:
            return True

        def _found(self, key: str, *, called: bool) -> bytes | None:
            with self._lock:
                value = self._values.get(key)
            if value is None:
                value = self._mail.get(self._name(key))
            if value is None:
                value = self._alike(key)
            if value is None and called and os.environ.get("RANK") != str(_FIRST):
                with contextlib.suppress(CallError):
                    value = self._mail.need(self._name(key), _FIRST)
            return value

        def _alike(self, key: str) -> bytes | None:
            """What this rank has put under a key that differs by a number alone."""
            pattern = _LAST_NUMBER.sub("#", key)
            with self._lock:
                for other_key, value in self._values.items():
                    if _LAST_NUMBER.sub("#", other_key) == pattern:
                        return value
            return None

        def _name(self, key: str) -> str:
            return f"store/{self._place}/{key}"

        def _say(self, key: str) -> None:
            self._absences.add(
                f"Key {key!r} of a store is read, and no rank that ran has set it:"
                " it is zeros"
            )

    return LoneStore


def _program_asks() -> bool:
    """Whether the caller of who asks this is the program, not torch."""
    try:
        return not is_library(sys._getframe(2).f_code.co_filename)  # noqa: SLF001
    except ValueError:  # a thread of torch's
        return False


def _world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def _bytes_of(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
