"""`memboard export`: recordings as the files of other tools, and as tables."""
