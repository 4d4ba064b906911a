"""Write the golden answers anew: python -m tests.routes.update [INPUT ...]."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.routes.inputs import INPUTS


class Updating:
    """Its presence makes the tests write what they would compare."""

    writes_goldens = True


def main(names: list[str]) -> int:
    """Run the tests of these inputs, or of all, and let them write."""
    unknown = set(names) - {*INPUTS, "shell"}
    if unknown:
        sys.exit(f"There is no input {sorted(unknown)}; there are {sorted(INPUTS)}.")
    here = str(Path(__file__).parent)
    chosen = " or ".join(
        f"golden_answers[{n}]" if n in INPUTS else "golden_shell" for n in names
    )
    words = ["-q", "-p", "no:cacheprovider", here]
    if chosen:
        words += ["-k", chosen]

    return int(pytest.main(words, plugins=[Updating()]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
