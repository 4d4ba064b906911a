"""Series over steps and time: reduction to pixels, growth, heatmaps, step findings."""
