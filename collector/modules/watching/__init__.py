"""What the tracker of module memory watches: dispatch, hooks, FSDP2, storages."""
