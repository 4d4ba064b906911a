"""Events of a trace's file become columns."""
