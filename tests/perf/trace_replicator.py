"""Makes large traces of a recorded one: its events again and again, later each time.

    python -m tests.perf.trace_replicator RECORDED TARGET [TARGET ...] --megabytes 42 638
    python -m tests.perf.trace_replicator RECORDED FOLDER --megabytes 0.55 --ranks 64

Each copy begins where the one before ended; correlation ids, external ids, ids of flows
and numbers of steps go on, so nothing refers to another copy. Written as torch writes:
indented, one value a line. With `--ranks` so many files are made in a folder, each with
its rank in `distributedInfo` and its slices up to a millisecond later than rank 0's.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP = re.compile(r"ProfilerStep#(\d+)")
IDS = ("correlation", "External id", "external id", "Ev Idx", "Python id")
PHASES = frozenset("Xistf")
_WHOLE, _BROKEN = 1, 2


def read(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    root = json.loads(data, strict=False)
    return root if isinstance(root, dict) else {"traceEvents": root}


class Copies:
    """The events of a trace as one text with gaps, to be filled for each copy."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self._texts: list[str] = []
        self._base: list[int] = []
        """What stands in each gap of the first copy; times are nanoseconds."""
        self._more: list[int] = []
        """What each later copy has more."""
        self._part: list[int] = []
        """Whether a gap takes all of it, or the whole or broken microseconds."""
        self._span_ns = _span_ns(events)
        self._ids = 1 + max(_ids_of(events), default=0)
        numbers = [int(found[1]) for found in map(_step, events) if found]
        self._steps = max(numbers) - min(numbers) + 1 if numbers else 0
        for event in events:
            self._add(event)
        self._format = ",\n".join(self._texts)

    def text(self, copy: int) -> str:
        """The events of a copy."""
        values = np.array(self._base) + copy * np.array(self._more)
        part = np.array(self._part)
        values = np.where(part == _WHOLE, values // 1000, values)
        values = np.where(part == _BROKEN, values % 1000, values)
        return self._format % tuple(values.tolist())

    def _gap(self, base: int, more: int, part: int = 0) -> str:
        self._base.append(base)
        self._more.append(more)
        self._part.append(part)
        return "%03d" if part == _BROKEN else "%d"

    def _add(self, event: dict[str, Any]) -> None:
        parts = [
            f'"{key}": {self._value(key, value)}'
            for key, value in event.items()
            if key != "args"
        ]
        text = "  {\n    " + ", ".join(parts)
        args = event.get("args")
        if args is not None:
            lines = [
                f'"{_kept(key)}": {self._argument(key, value)}'
                for key, value in args.items()
            ]
            text += ',\n    "args": {\n      ' + ",\n      ".join(lines) + "\n    }"
        self._texts.append(text + "\n  }")

    def _value(self, key: str, value: Any) -> str:
        if key == "ts":
            if isinstance(value, int):
                return self._gap(value * 1000, self._span_ns, _WHOLE)
            ns = int(value) * 1000 + round(value % 1 * 1000)
            gaps = [self._gap(ns, self._span_ns, one) for one in (_WHOLE, _BROKEN)]
            return ".".join(gaps)
        if key == "dur" and isinstance(value, float):
            return f"{value:.3f}"
        if key == "id" and type(value) is int:
            return self._gap(value, self._ids)
        step = STEP.fullmatch(value) if key == "name" and type(value) is str else None
        if step:
            return f'"ProfilerStep#{self._gap(int(step[1]), self._steps)}"'
        return _kept(json.dumps(value))

    def _argument(self, key: str, value: Any) -> str:
        if key in IDS and type(value) is int and value > 0:
            return self._gap(value, self._ids)
        return _kept(json.dumps(value))


def _kept(text: str) -> str:
    """A text that formatting leaves as it is."""
    return text.replace("%", "%%")


def _step(event: dict[str, Any]) -> re.Match[str] | None:
    return STEP.fullmatch(str(event.get("name")))


def _ids_of(events: list[dict[str, Any]]) -> Iterator[int]:
    for event in events:
        for name in IDS:
            value = event.get("args", {}).get(name)
            if type(value) is int:
                yield value


def _span_ns(events: list[dict[str, Any]]) -> int:
    """From the first start to behind the last end, in whole microseconds."""
    first = min(event["ts"] for event in events)
    last = max(event["ts"] + event.get("dur", 0) for event in events)
    return (int(last - first) + 1000) * 1000


def replicate(
    recorded: Path, target: Path, num_bytes: int, rank: int = 0, ranks: int = 0
) -> int:
    """Write copies until the file has so many bytes; how many.

    `ranks`: how many there are; 0 leaves the recorded rank as it is.
    """
    root = read(recorded)
    events = root.pop("traceEvents")
    if ranks:
        info = root.get("distributedInfo")
        info = info if isinstance(info, dict) else {"backend": "nccl"}
        root["distributedInfo"] = {**info, "rank": rank, "world_size": ranks}
        late_us = round(1000 * random.Random(rank).random(), 3) if rank else 0
        for event in events:
            if isinstance(event.get("ts"), (int, float)):
                event["ts"] = round(event["ts"] + late_us, 3)
    shown = ["Record Window End", "Iteration Start: PyTorch Profiler"]
    others = [event for event in events if event.get("ph") == "M"]
    copies = Copies(
        [
            event
            for event in events
            if isinstance(event.get("ts"), (int, float))
            and event.get("ph") in PHASES
            and event.get("name") not in shown
        ]
    )
    with target.open("w") as file:
        head = json.dumps(root, indent=2)[:-2]
        file.write(head + ("," if root else "") + '\n  "traceEvents": [\n')
        file.write("".join(f"  {json.dumps(event)},\n" for event in others))
        written, copy = 0, 0
        while copy == 0 or written < num_bytes:
            text = copies.text(copy)
            written += file.write((",\n" if copy else "") + text)
            copy += 1
        file.write("\n  ]\n}\n")
    return copy


def ranks_of(recorded: Path, folder: Path, num_bytes: int, ranks: int) -> None:
    """A file for each rank, named as torch names them."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        target = folder / f"rank{rank}_{4000 + rank}.1700000000000.pt.trace.json"
        replicate(recorded, target, num_bytes, rank, ranks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("recorded", type=Path)
    parser.add_argument("targets", type=Path, nargs="+")
    parser.add_argument("--megabytes", type=float, nargs="+", default=[42])
    parser.add_argument("--ranks", type=int, default=0)
    options = parser.parse_args()
    if len(options.targets) != len(options.megabytes):
        raise SystemExit("as many sizes as targets, please")
    for target, megabytes in zip(options.targets, options.megabytes, strict=True):
        num_bytes = int(megabytes * 1_000_000)
        if options.ranks:
            ranks_of(options.recorded, target, num_bytes, options.ranks)
            size = sum(path.stat().st_size for path in target.iterdir())
            print(f"{target}: {options.ranks} ranks, {size:,} bytes")
        else:
            copies = replicate(options.recorded, target, num_bytes)
            print(f"{target}: {copies} copies, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
