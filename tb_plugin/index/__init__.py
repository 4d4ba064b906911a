"""What exists: logdirs, runs and their files, found cheaply."""
