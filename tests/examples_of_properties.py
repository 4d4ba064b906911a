"""Makes hypothesis try the same examples each time, on any machine."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers


def load_profile() -> None:
    """Let nothing depend on chance, nor on how fast the machine is.

    What a random example finds would fail on somebody else's change. To look for more:
    `HYPOTHESIS_EXPLORES=1 pytest -m hypothesis`. Where `CI` is set, as in
    `run.sh`, a property is tried with
    25 examples, elsewhere with 100.
    """
    explores = "HYPOTHESIS_EXPLORES" in os.environ
    if not explores:
        # It would try numbers and texts that stand in whichever of our modules are
        # imported by then: other examples after another order of tests, or a change.
        none_yet = getattr(providers, "_local_constants", None)
        providers._get_local_constants = lambda: none_yet
    settings.register_profile(
        "memboard",
        max_examples=25 if os.environ.get("CI") else 100,
        deadline=None,
        derandomize=not explores,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile("memboard")
