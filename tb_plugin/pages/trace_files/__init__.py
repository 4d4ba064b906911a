"""Files of traces: which there are, what recordings say of them, all in one."""
