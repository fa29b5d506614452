"""``python -m labelsieve``: the command line, where its program is not on the path."""

import sys

from labelsieve.cli import main

if __name__ == "__main__":
    sys.exit(main())
