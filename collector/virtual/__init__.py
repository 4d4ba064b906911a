"""The virtual GPU: a CUDA build of torch runs on a machine without GPU or driver.

NVIDIA's shared libraries are replaced by stubs built on the spot (`build`):
memory is address space that is accounted for (`native/`), launches do nothing.
torch's own allocator, statistics, history and errors run for real.
"""
