"""The settings of the mirror: where recordings and files go besides the local disk."""

from __future__ import annotations

from dataclasses import dataclass, field

from collector.config_checks import check_fields
from collector.config_options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentsConfig:
    """A rank's file as numbered files, of which all but the newest never change."""

    enabled: bool = False
    """Write each rank's file as numbered segments. Where `remote` mirrors them, it is
    done anyway."""

    max_bytes: int = field(default=2**24, metadata={"least": 2**16, "most": 2**30})
    """A segment that has grown to this is finished."""

    seconds: float = field(default=60.0, metadata={"least": 0.1, "most": 86400})
    """So is one this old that holds anything new. In a long run segments last longer: a
    32nd of its time, at most an hour, so that their number stays bounded."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteConfig:
    """Where finished files are copied to while training runs, and how."""

    url: str = ""
    """Where to, as fsspec writes it (s3://, gs://, abfs://, hdfs://, file:// ...), with
    `{run_name}`, `{rank}`, `{node_rank}` and the like in it. Empty: nowhere."""

    events: str | None = "{path}"
    """Key of the recordings below the url; `{path}` is the path below the run's directory,
    `{name}` the file's name. null: they stay here."""

    traces: str | None = "{path}"
    """Key of the torch profiler's traces, which may hold Composer's variables: `{epoch}`,
    `{batch}` and so on. null: they stay here."""

    snapshots: str | None = "{path}"
    """Key of allocator snapshots that are left as pickles. null: they stay here."""

    dumps: str | None = "{path}"
    """Key of the files that `dumps` writes. null: they stay here."""

    merged: str | None = "{path}"
    """Key of the merged trace. null: it stays here."""

    prune: bool = False
    """Delete a local file once its copy was verified; never the newest segment. Not with
    `merge_on_close` or `dumps`, which read what lies here."""

    concurrency: int = field(default=2, metadata={"least": 1, "most": 64})
    """Files that are uploaded at the same time."""

    queue_files: int = field(default=10_000, metadata={"least": 1, "most": 10**6})
    """Files that may wait; more stay here, are counted and go with the next start."""

    retry_seconds: float = field(default=60.0, metadata={"least": 0.1, "most": 3600})
    """The longest pause between two tries at a store that refuses or is away."""

    close_seconds: float = field(default=30.0, metadata={"least": 0, "most": 86400})
    """The longest that the end of a recording waits for uploads; what is left then is
    named, and goes with the next start."""

    storage_options: Options = field(default=Options())
    """Given to fsspec's file system as they are (`{anon: true}`,
    `{client_kwargs: {endpoint_url: ...}}`); in a variable as JSON. Not recorded."""

    def __post_init__(self) -> None:
        check_fields(self)
