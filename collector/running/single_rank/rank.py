"""One rank of a job whose other ranks do not run: nothing waits for them.

torch's own process groups, meshes and sharding run as ever, NCCL's on the virtual GPU. What
would wait for another process is answered here:

- stores are of this process alone (`store.py`), whether a rendezvous gives them or the
  program makes them;
- gloo's groups are torch's `fake` ones, which hand each rank's slot one's own data;
- objects come from ranks that ran before or that run for it (`objects.py`, `calls.py`), or
  are this one's own;
- a distributed checkpoint has this rank's shards alone.

All ranks are taken to agree. Where that cannot be, it is written down.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlparse

from memboard.collector.running.imports import after_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memboard.collector.running.single_rank.store import Stores

_SCHEMES: Final = ("env", "tcp", "file")
_PLANNER: Final = "torch.distributed.checkpoint.default_planner"

_GLOO: Final = "gloo"
_FAKE: Final = "fake"


def prepare(stores: Stores) -> None:
    """Change what has just been imported as `torch.distributed.distributed_c10d`."""
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    handlers = sys.modules["torch.distributed.rendezvous"].__dict__[
        "_rendezvous_handlers"
    ]
    for scheme in _SCHEMES:
        handlers[scheme] = lambda url, **_: _meeting(url, stores.met(url))
    stores.install(
        sys.modules["torch.distributed"],
        sys.modules["torch._C._distributed_c10d"],
    )
    after_import(_PLANNER, _accept_part_of_a_checkpoint)
    c10d._new_process_group_helper = _with_fake_gloo(c10d)  # noqa: SLF001
    c10d.monitored_barrier = lambda *_, **__: None
    c10d._store_based_barrier = lambda *_, **__: None  # noqa: SLF001


def _meeting(url: str, store: Any) -> Iterator[tuple[Any, int, int]]:
    """What a rendezvous yields: the store, this rank, and how many there are."""
    query = parse_qs(urlparse(url).query)
    rank = int(query["rank"][0] if "rank" in query else os.environ["RANK"])
    size = query["world_size"][0] if "world_size" in query else os.environ["WORLD_SIZE"]
    yield store, rank, int(size)


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
        _know_fake(c10d)
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


def _know_fake(c10d: Any) -> None:
    """Have torch know the name, with options that were meant for the backend beside it."""
    # Its import registers it.
    fake_pg: Any = import_module("torch.testing._internal.distributed.fake_pg")
    plugins = c10d.Backend._plugins  # noqa: SLF001
    plugin = plugins[_FAKE.upper()]
    if not plugin.extended_api or plugin.creator_fn.__module__ == __name__:
        return
    own_options = getattr(fake_pg.FakeProcessGroup, "Options", ())

    def create(common: Any, options: Any) -> Any:
        is_own = isinstance(options, own_options)
        return plugin.creator_fn(common, options if is_own else None)

    plugins[_FAKE.upper()] = plugin._replace(creator_fn=create)


def _accept_part_of_a_checkpoint() -> None:
    """A plan of one rank's shards is not whole, which torch would refuse."""
    planner: Any = sys.modules[_PLANNER]
    validate = planner._validate_global_plan  # noqa: SLF001

    def valid(_plan: Any, metadata: Any) -> Any:
        return validate([], type(metadata)(state_dict_metadata={}))

    planner._validate_global_plan = valid  # noqa: SLF001


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
