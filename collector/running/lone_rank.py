"""One rank of a job whose other ranks do not run: nothing waits for them.

torch's own process groups, meshes and sharding run as ever, NCCL's on the virtual GPU. What
would wait for another process is answered here:

- the rendezvous gives a store of this process alone, in which keys of other ranks hold what
  this rank has put there;
- gloo's groups are torch's `fake` ones, which hand each rank's slot one's own data;
- objects come from where `messages` has them: from ranks that ran before, or this one's own.

All ranks are taken to agree. Where that cannot be, it is written down.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlparse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SCHEMES: Final = ("env", "tcp", "file")
_ID_BYTES: Final = 128
"""Of the id that rank 0 gives a communicator of NCCL."""
_LAST_NUMBER: Final = re.compile(r"\d+(?=\D*$)")

_GLOO: Final = "gloo"
_FAKE: Final = "fake"


def prepare() -> None:
    """Change what has just been imported as `torch.distributed.distributed_c10d`."""
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    handlers = sys.modules["torch.distributed.rendezvous"].__dict__[
        "_rendezvous_handlers"
    ]
    store = _store_class(c10d)()
    for scheme in _SCHEMES:
        handlers[scheme] = lambda url, **_: _meeting(url, store)
    c10d._new_process_group_helper = _with_fake_gloo(c10d)  # noqa: SLF001
    c10d.monitored_barrier = lambda *_, **__: None
    c10d._store_based_barrier = lambda *_, **__: None  # noqa: SLF001


def _meeting(url: str, store: Any) -> Iterator[tuple[Any, int, int]]:
    """What a rendezvous yields: the store, this rank, and how many there are."""
    query = parse_qs(urlparse(url).query)
    rank = int(query["rank"][0] if "rank" in query else os.environ["RANK"])
    size = query["world_size"][0] if "world_size" in query else os.environ["WORLD_SIZE"]
    yield store, rank, int(size)


def _store_class(c10d: Any) -> Any:
    class LoneStore(c10d.Store):  # type: ignore[misc]
        """Keys and values of this process; what another rank would put is made up."""

        def __init__(self) -> None:
            super().__init__()
            self._values: dict[str, bytes] = {}
            self._lock = threading.Lock()

        def set(self, key: str, value: Any) -> None:
            with self._lock:
                self._values[key] = _bytes_of(value)

        def get(self, key: str) -> bytes:
            with self._lock:
                value = self._values.get(key)
                return self._of_another(key) if value is None else value

        def add(self, key: str, amount: int) -> int:
            with self._lock:
                total = int(self._values.get(key, b"0")) + amount
                self._values[key] = str(total).encode()
            return total

        def append(self, key: str, value: Any) -> None:
            with self._lock:
                self._values[key] = self._values.get(key, b"") + _bytes_of(value)

        def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
            with self._lock:
                now = self._values.get(key)
                if (now or b"") == _bytes_of(expected):
                    now = self._values[key] = _bytes_of(desired)
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
            """Only of what this rank has put there: others signal errors by keys."""
            with self._lock:
                return all(key in self._values for key in keys)

        def wait(self, *_: Any) -> None:
            """Everybody is there."""

        def num_keys(self) -> int:
            return len(self._values)

        def has_extended_api(self) -> bool:
            return True

        def _of_another(self, key: str) -> bytes:
            """What this rank has put under the key that differs by a number alone."""
            pattern = _LAST_NUMBER.sub("#", key)
            for known, value in self._values.items():
                if _LAST_NUMBER.sub("#", known) == pattern:
                    return value
            return bytes(_ID_BYTES)

    return LoneStore


def _bytes_of(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _with_fake_gloo(c10d: Any) -> Callable[..., Any]:
    """`_new_process_group_helper` that makes `fake` groups where gloo's are wanted."""
    helper = c10d._new_process_group_helper  # noqa: SLF001
    names = helper.__code__.co_varnames[: helper.__code__.co_argcount]
    place = names.index("backend")

    def make(*args: Any, **keywords: Any) -> Any:
        wanted = keywords.get("backend", args[place] if len(args) > place else None)
        backend = without_gloo(str(wanted))
        if backend == str(wanted):
            return helper(*args, **keywords)
        # Its import is what makes torch know the name.
        from torch.testing._internal.distributed import fake_pg  # noqa: F401

        # Options of a backend are those of one's own kind.
        if "backend_options" in keywords and backend == _ALL_FAKE:
            keywords["backend_options"] = None
        chosen = c10d.Backend(backend)
        if "backend" in keywords:
            keywords["backend"] = chosen
        else:
            args = (*args[:place], chosen, *args[place + 1 :])
        made = helper(*args, **keywords)
        group = made[0]
        if group in c10d._world.pg_map:  # noqa: SLF001  # the program asks for its name
            _, store = c10d._world.pg_map[group]  # noqa: SLF001
            c10d._world.pg_map[group] = (wanted, store)  # noqa: SLF001
        return made

    return make


_ALL_FAKE: Final = "cpu:fake,cuda:fake"


def without_gloo(backend: str) -> str:
    """A backend, or several by device, with `fake` where gloo stood.

    `undefined` is what torch makes of none: gloo for the host, NCCL for the device.
    """
    if backend == "undefined":
        return "cpu:fake,cuda:nccl"
    if backend == _GLOO:
        return _ALL_FAKE
    parts = [part.partition(":") for part in backend.split(",")]
    return ",".join(
        f"{device}{colon}{_FAKE if name == _GLOO else name}"
        for device, colon, name in parts
    )
