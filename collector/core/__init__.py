"""The engine of one recording: session, threads, rank, process, and the guard."""
