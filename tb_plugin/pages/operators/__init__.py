"""Operators, kernels, module times and memory of a profiler's trace."""
