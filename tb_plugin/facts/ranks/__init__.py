"""Facts of ranks: peaks, growth, ends, hosts, losses, and how a run stands."""
