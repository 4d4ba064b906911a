"""Steps: times by part, throughput, and what slows them down."""
