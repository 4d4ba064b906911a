"""The memory of modules through a whole step: where every byte is, and since when.

An own tracker, for FSDP2, DDP and plain modules. A dispatch mode sees every storage that
an operator returns, weak references see it go, and hooks see the modules: all of it goes
into a log of deltas and boundaries, at a cost that does not grow with the number of
modules. Who held what at which module's boundary is computed from the log later, by the
plugin.

The sizes are those of storages, rounded as CUDA's allocator does: what torch calls
active bytes, without its reserve, fragmentation, workspaces and NCCL's own buffers.
"""
