"""Groups that are split off others: NCCL is told a colour, and not how many have it.

NCCL finds out by asking all ranks. On a virtual device each rank is alone with its
communicators, so their size is told before.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

_TELL: Final = "memboard_vgpu_split_ranks"


def tell_sizes(c10d: Any) -> None:
    """Have `split_group` tell; `c10d` is `torch.distributed.distributed_c10d`."""
    split = getattr(c10d, "split_group", None)
    tell = getattr(ctypes.CDLL(None), _TELL, None)
    if split is None or tell is None:
        return

    def split_group(
        parent_pg: Any = None, split_ranks: Any = None, *args: Any, **keywords: Any
    ) -> Any:
        me = (parent_pg or c10d.group.WORLD).rank()
        tell(next((len(ranks) for ranks in split_ranks or () if me in ranks), 0))
        try:
            return split(parent_pg, split_ranks, *args, **keywords)
        finally:
            tell(0)

    c10d.split_group = split_group
