"""Event logs of modules for tests, and their answers worked out the slow way.

A little program allocates and frees while modules run; `Replay` walks its events one by
one with dictionaries, and shares no code with the analyser.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from memboard.collector.format.memory import CATEGORIES, STATES

FORWARD = (
    "before_pre_forward",
    "after_pre_forward",
    "before_post_forward",
    "after_post_forward",
)
BACKWARD = (
    "before_pre_backward",
    "after_pre_backward",
    "before_post_backward",
    "after_post_backward",
)


@dataclass
class LogBuilder:
    """Writes the tables of a capture, event by event."""

    modules: list[tuple[str, int]] = field(default_factory=list)
    """(fqn, parent)."""
    events: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    """(time_us, delta, category, device, owner, storage)."""
    boundaries: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    """(time_us, event, module, state, in_backward, call)."""
    types: dict[str, str] = field(default_factory=dict)
    """By fqn, where they are not `Linear`."""
    now: int = 0

    def module(self, fqn: str, parent: int = -1, type_: str = "Linear") -> int:
        self.modules.append((fqn, parent))
        self.types[fqn] = type_
        return len(self.modules) - 1

    def alloc(
        self,
        size: int,
        category: str,
        owner: int = -1,
        device: int = 0,
        storage: int = 0,
    ) -> None:
        row = (self.now, size, CATEGORIES.index(category), device, owner, storage)
        self.events.append(row)

    def at(self, module: int, state: str, call: int = 0) -> None:
        backward = int("backward" in state or state.endswith("_ac"))
        row = (self.now, len(self.events), module, STATES.index(state), backward, call)
        self.boundaries.append(row)

    def tick(self, us: int = 1) -> None:
        self.now += us

    def tables(self) -> dict:
        fqns = tuple(fqn for fqn, _ in self.modules)
        num = len(fqns)
        events = np.array(self.events, np.int64).reshape(-1, 6).T
        bounds = np.array(self.boundaries, np.int64).reshape(-1, 6).T
        names = ("time_us", "delta_bytes", "category", "device", "module", "storage")
        bound_names = ("time_us", "event", "module", "state", "in_backward", "call")
        return {
            "modules": {
                "fqn": fqns,
                "path": tuple(fqn.partition(".")[2] for fqn in fqns),
                "type": tuple(self.types.get(fqn, "Linear") for fqn in fqns),
                "parent": np.array([p for _, p in self.modules], np.int64),
                "is_fsdp": np.zeros(num, np.int64),
                "param_bytes": np.arange(num, dtype=np.int64) * 512,
                "buffer_bytes": np.zeros(num, np.int64),
            },
            "events": dict(zip(names, events, strict=True)),
            "boundaries": dict(zip(bound_names, bounds, strict=True)),
        }


class Replay:
    """What a log holds at any moment, event by event."""

    def __init__(self, log: LogBuilder, device: int = 0) -> None:
        self.log = log
        self.device = device

    def held(self, moment: int, below: int | None = None) -> dict[str, int]:
        """By category, after so many events; of one module's subtree alone if given."""
        found: dict[str, int] = defaultdict(int)
        for _, delta, category, device, owner, _ in self.log.events[:moment]:
            if device == self.device and (below is None or self.is_below(owner, below)):
                found[CATEGORIES[category]] += delta
        return {name: size for name, size in found.items() if size}

    def is_below(self, module: int, ancestor: int) -> bool:
        while module >= 0:
            if module == ancestor:
                return True
            module = self.log.modules[module][1]
        return False

    def moments(self, module: int, state: str) -> dict[int, int]:
        """By call: the moment of a state of a module."""
        return {
            call: event
            for _, event, of, index, _, call in self.log.boundaries
            if of == module and STATES[index] == state
        }

    def peak(self, module: int, first: str, last: str, call: int) -> tuple[int, int]:
        """(moment, bytes): the first highest total between two boundaries."""
        begin = self.moments(module, first)[call]
        end = self.moments(module, last)[call]
        sizes = [sum(self.held(m).values()) for m in range(begin, end + 1)]
        return begin + sizes.index(max(sizes)), max(sizes)


def random_log(seed: int, num_modules: int = 9, num_calls: int = 2) -> LogBuilder:
    """A tree of modules whose forwards and backwards allocate and free at random."""
    dice = random.Random(seed)
    log = LogBuilder()
    log.module("Root")
    for index in range(1, num_modules):
        parent = dice.randrange(index)
        log.module(f"{log.modules[parent][0]}.m{index}", parent)
    live: list[tuple[int, str, int, int]] = []

    def work(owner: int) -> None:
        for _ in range(dice.randrange(4)):
            log.tick(dice.randrange(3))
            if live and dice.random() < 0.45:
                size, category, of, device = live.pop(dice.randrange(len(live)))
                log.alloc(-size, category, of, device)
            else:
                block = (
                    dice.randrange(1, 50) * 512,
                    dice.choice(CATEGORIES),
                    dice.choice([owner, owner, -1]),
                    dice.choice([0, 0, 0, 1]),
                )
                live.append(block)
                log.alloc(*block)

    for index in range(num_modules):
        log.alloc(1024 * (index + 1), "sharded_param", index)
        live.append((1024 * (index + 1), "sharded_param", index, 0))

    def run(module: int, call: int, states: tuple[str, ...]) -> None:
        log.at(module, states[0], call)
        work(module)
        log.at(module, states[1], call)
        for child, (_, parent) in enumerate(log.modules):
            if parent == module:
                run(child, call, states)
        work(module)
        log.at(module, states[2], call)
        work(module)
        log.at(module, states[3], call)

    for call in range(num_calls):
        log.tick(10)
        run(0, call, FORWARD)
        run(0, call, BACKWARD)
    log.tick()
    log.at(-1, "before_optimizer")
    work(-1)
    log.at(-1, "after_optimizer")
    work(-1)
    return log
