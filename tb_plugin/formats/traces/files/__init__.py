"""Files of traces: which there are, of which rank, worker and cycle; none is read."""
