"""``python -m cobre``: the command line."""

import sys

from cobre.cli import main

if __name__ == "__main__":
    sys.exit(main(program="python -m cobre"))
