"""Names of the annotations that are steps: torch's profiler's, and those of engines.

ProfilerStep#12                                  torch.profiler, and Ascend's
execute_context_1(888)_generation_0(0)           vLLM, each forward pass of its worker
step[DECODE bs=8]                                SGLang, likewise

An engine's are steps where no profiler marks any; they have no number but their order's.
"""

from __future__ import annotations

import re
from typing import Final

PROFILER_STEP: Final = re.compile(r"ProfilerStep#(\d{1,18})")
ENGINE_STEP: Final = re.compile(
    r"execute_(?:\d+_)?(?:context|new)_\d\S*"
    r"|step\[(?:EXTEND|PREFILL|DECODE|MIXED|IDLE|TARGET_VERIFY|DRAFT_EXTEND)\b.*\]",
    re.DOTALL,
)


def is_step_mark(annotation: str) -> bool:
    """Whether an annotation is around a step, and no work of its own."""
    return bool(
        PROFILER_STEP.fullmatch(annotation) or ENGINE_STEP.fullmatch(annotation)
    )
