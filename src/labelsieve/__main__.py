"""Run the command line as ``python -m labelsieve``."""

import sys

from labelsieve.cli import main

if __name__ == "__main__":
    sys.exit(main())
