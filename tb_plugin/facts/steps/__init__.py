"""Steps of ranks: their parts, rates, the profiler's own, and who is waited for."""
