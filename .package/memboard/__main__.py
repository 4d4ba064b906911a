"""`python -m memboard` is the command `memboard`."""

import sys

from memboard.tb_plugin.cli import main

if __name__ == "__main__":
    sys.exit(main())
