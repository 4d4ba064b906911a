"""Suspects of an out-of-memory error: consumers, unusable free memory, too little capacity."""
