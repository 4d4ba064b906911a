"""The memory events of a trace: whose they are and what they were for."""
