"""Files of other tools become tables: read by a worker process, cached as mapped columns."""
