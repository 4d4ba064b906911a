"""Several ranks beside each other: clocks, collectives, stragglers, outliers."""
