"""`memboard report`: what a run or a file says, as text, Markdown or JSON."""
