"""The process that writes a mirrored run's index: `python -m tb_plugin.cli.index_process`.

Rank 0 starts it when its recording has closed, and does not wait. It waits a bounded time
for the other ranks' files; where it does not come to its end, `memboard index URL` does
the same at any later time.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any, Final

from collector.cli.failure import Failure
from collector.format.names import RANK_FILES_DIR, RUN_INDEX

_WAIT_SECONDS: Final = 60.0
_MADE: Final = "/".join(("", *RANK_FILES_DIR, RUN_INDEX))
"""How the URL of an index ends, below that of its run."""


def main() -> int:
    """Write the index whose URL is the argument; standard input holds the settings.

    They are what `collector.mirror.finishing` takes: options may be secret.
    """
    from tb_plugin import storage
    from tb_plugin.cli.index_runs import write_index
    from tb_plugin.cli.recordings import open_store
    from tb_plugin.storage.urls import parse_url

    task: dict[str, Any] = json.load(sys.stdin)
    target = sys.argv[1]
    if not target.endswith(_MADE) or target.startswith("file:"):
        return 0  # ranks' files have keys of their own, or lie on a disk
    url = parse_url(target.removesuffix(_MADE))
    options = {**url.options, **task["settings"]["storage_options"]}
    remote = storage.mount(replace(url, options=options))
    try:
        for run in open_store(url.root).runs():
            if run.made_of == "recording":
                write_index(run, remote, _WAIT_SECONDS)
    except Failure as failure:
        sys.stderr.write(f"{failure}\n")
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
