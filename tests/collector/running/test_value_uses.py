"""Lines that only show a value of the device, and lines that decide by it."""

from __future__ import annotations

import logging
import sys

import pytest

from memboard.collector.running.value_uses import is_only_shown

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="instructions have no columns"
)


class Value:
    """A tensor whose reads are judged."""

    def __init__(self) -> None:
        self.judged: list[bool] = []

    def item(self) -> float:
        self._judge(sys._getframe(1))
        return 0.0

    def tolist(self) -> list[int]:
        self._judge(sys._getframe(1))
        return [0]

    nonzero = tolist

    def _judge(self, frame) -> None:
        self.judged.append(is_only_shown(frame.f_code, frame.f_lasti))


def judged(folder, text: str) -> bool:
    path = folder / f"program{len(list(folder.iterdir()))}.py"
    path.write_text(text)
    x = Value()
    names = {"x": x, "logger": logging.getLogger("none"), "list": list}
    exec(compile(text, str(path), "exec"), names)
    (is_shown,) = x.judged
    return is_shown


@pytest.mark.parametrize(
    "text",
    [
        "x.item()",
        "print('loss', x.item())",
        "print(f'loss {x.item():.3f}')",
        "print('loss %.3f' % x.item())",
        "print('loss {}'.format(round(x.item(), 3)))",
        "logger.info('loss %s', x.item())",
        "value = x.item()",
        "value = x.item() / 3\nprint(value)",
        "total = 0\ntotal += x.item()\nprint(total)",
        "sizes = x.tolist()\nprint(sizes[0], 'of', sizes)",
        "def step():\n    loss = x.item()\n    logger.info(f'{loss}')\nstep()\nloss = 1\nif loss: pass",
    ],
)
def test_what_is_only_shown(tmp_path, text):
    assert judged(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "if x.item() > 1:\n    pass",
        "while x.item():\n    pass",
        "assert not x.item()",
        "print('high' if x.item() > 1 else 'low')",
        "value = x.item()\nprint(value)\nif value > 1:\n    pass",
        "list(range(int(x.item())))",
        "sizes = x.tolist()\nbytes(sizes[0])",
        "x.nonzero()",
        "def read():\n    return x.item()\nprint(read())",
        "class Meter: pass\nMeter.loss = x.item()",
        "import math\nbytes(int(math.exp(x.item())))",
        "def step():\n    global loss\n    loss = x.item()\nstep()\nif loss: pass",
        "for one in x.tolist():\n    pass",
    ],
)
def test_what_may_decide(tmp_path, text):
    assert not judged(tmp_path, text)


def test_without_the_source_it_may_decide():
    x = Value()
    exec(compile("print(x.item())", "no such file.py", "exec"), {"x": x})
    assert x.judged == [False]
