"""Events and segments as they are listed and drawn, one after the other."""
