"""Fuzzes the reader of snapshots: whatever it takes, an unpickler makes the same of.

    python tests/fuzz/snapshots.py [SECONDS] [FOLDER] [OPTIONS OF LIBFUZZER]

Starts from small snapshots of every form, changed opcode by opcode, as JSON and as bytes.
A file is either refused in words, or gives what Python's own unpickler (that calls
nothing) gives, and tables that are rebuilt to the same. Anything else ends the run, and
the input is left in FOLDER (else in a new one), to be given again:

    python tests/fuzz/snapshots.py 0 FOLDER/crash-...

What is tried is another each time, but with -seed=1 -entropic=0 and PYTHONHASHSEED=0.

Needs atheris, which has wheels for Linux and Python 3.11 to 3.13.
"""

from __future__ import annotations

import gc
import io
import json
import pickle
import pickletools
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["memboard.tb_plugin.formats.snapshots"]):
    from memboard.tb_plugin.formats.snapshots import snapshot_file, window
    from memboard.tb_plugin.worker.errors import RefusedError

from memboard.collector.format.snapshots import rebuilt
from tests.made_snapshots import everything, long_history, pooled, releases
from tests.tb_plugin.readers.snapshots.pickled import carried_out, filled, same

COUNTS = {"runs": 0, "taken": 0, "tables": 0, "json": 0, "batched": 0}
WINDOW = window._READ, window.MARGIN
SEEDS: list[bytes] = []
FRAME = 0x95


class NoClasses(pickle._Unpickler):  # type: ignore[name-defined]  # Python's own, in Python
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


def seeds() -> list[bytes]:
    """Small files of every form."""
    snapshots = [*releases().values(), long_history(40, depth=3), pooled(40)]
    found = []
    for snapshot in snapshots:
        for protocol in (2, 3, 4, 5):
            data = pickle.dumps(snapshot, protocol=protocol)
            found += [data, b"".join(pieces(data, random.Random(0)))]
        plain = snapshot
        if isinstance(snapshot, dict):
            plain = {k: v for k, v in snapshot.items() if k != "from_the_future"}
        found.append(json.dumps(plain).encode())
    found.append(pickle.dumps(everything(), protocol=4))
    return found


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    """The opcodes of a pickle with their arguments, without those of frames."""
    found, last = [], 0
    try:
        places = [place for _, _, place in pickletools.genops(data)]
    except (
        ValueError,
        EOFError,
        IndexError,
        OverflowError,
    ):  # it was changed already: cut it anywhere
        places = sorted(chance.sample(range(len(data)), min(40, len(data))))
    for place in [*places, len(data)]:
        if place > last and data[last] != FRAME:
            found.append(data[last:place])
        last = place
    return [piece for piece in found if piece]


def changed(data: bytes, max_size: int, seed: int) -> bytes:
    """libFuzzer's change of bytes, or one of opcodes."""
    chance = random.Random(seed)
    if chance.random() < 0.3:  # or all would be far from any snapshot after a while
        data = chance.choice(SEEDS)
    if chance.random() < 0.4 or not data:
        return atheris.Mutate(data, max_size)
    parts = pieces(data, chance)
    for _ in range(chance.randint(1, 3)):
        if not parts:
            break
        place = chance.randrange(len(parts))
        other = chance.randrange(len(parts))
        length = chance.choice((1, 1, 2, 5, 20, 60))
        kind = chance.randrange(5)
        if kind == 0:
            del parts[place : place + length]
        elif kind == 1:
            parts[place:place] = parts[other : other + length]
        elif kind == 2:
            parts[place] = parts[other]
        elif kind == 3:
            parts[place], parts[other] = parts[other], parts[place]
        else:
            piece = bytearray(parts[place])
            at = chance.randrange(len(piece))
            piece[at] = chance.choice((piece[at] ^ 1, chance.randrange(256)))
            parts[place] = bytes(piece)
    return b"".join(parts)[:max_size]


def check(data: bytes) -> None:
    COUNTS["runs"] += 1
    is_json = data.lstrip()[:1] in (b"{", b"[")
    try:
        tables = snapshot_file.read_tables(io.BytesIO(data))
    except RefusedError:
        tables = None
    if is_json:
        COUNTS["json"] += tables is not None
        if tables is not None:
            rebuilt(tables)
        return
    # Windows that end anywhere; a text that is longer than one may be refused.
    small = len(data) % 2 == 1
    window._READ, window.MARGIN = (101, 2000) if small else WINDOW
    try:
        machine, root = carried_out(data)
    except RefusedError:
        assert small or tables is None
        return
    finally:
        window._READ, window.MARGIN = WINDOW
    if data[:2] == b"\x1f\x8b":
        return
    COUNTS["taken"] += 1
    COUNTS["batched"] += machine.memo.count > len(machine.memo._objects)
    try:
        expected = NoClasses(io.BytesIO(data)).load()
    except pickle.UnpicklingError as error:
        # Frames are hints to us; their lengths are not checked against opcodes.
        if "frame" not in str(error):
            raise
        return
    if tables is not None:
        COUNTS["tables"] += 1
        assert same(rebuilt(tables), expected), "the tables are another snapshot's"
        assert same(filled(machine, root), expected), "something else was read"


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp())
    if folder.is_file():
        check(folder.read_bytes())
        print("nothing found")
        return
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    SEEDS.extend(seeds())
    for number, data in enumerate(SEEDS):
        (corpus / f"seed-{number}").write_bytes(data)
    print(f"inputs that fail are left in {folder}")
    began = time.monotonic()
    arguments = [
        sys.argv[0],
        f"-max_total_time={seconds:.0f}",
        f"-artifact_prefix={folder}/",
        "-max_len=20000",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-print_final_stats=0",
        *sys.argv[3:],
        str(corpus),
    ]
    atheris.Setup(arguments, lambda data: counted(data, began), custom_mutator=changed)
    atheris.Fuzz()


def counted(data: bytes, began: float) -> None:
    """libFuzzer ends the process as it stands, so the counts are printed on the way."""
    try:
        check(data)
    except BaseException:
        report(began)
        raise
    if COUNTS["runs"] % 10_000 == 0:
        gc.collect()
        report(began)


def report(began: float) -> None:
    spent = time.monotonic() - began
    print(
        f"{COUNTS['runs'] / spent:.0f} runs/s over {spent:.0f} s: {COUNTS}", flush=True
    )


if __name__ == "__main__":
    main()
