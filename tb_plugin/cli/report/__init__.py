"""`memboard report`: a run or a file as text, Markdown or JSON.

- `reading`: the pages' answers about a run, read to the end; `traces`: its traces;
- `sections`: the most important of them, as sections of lines and tables;
  `memory_sections`: those of modules, functions and snapshots;
- `document`: sections as text and as Markdown.
"""
