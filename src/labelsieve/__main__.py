"""Run the command line as ``labelsieve`` or ``python -m labelsieve``."""

import sys


def main() -> int:
    """Run the command line. Ctrl-C is handled from the first import on."""
    try:
        from labelsieve.cli import main as run
    except KeyboardInterrupt:
        print("error: interrupted.", file=sys.stderr)
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
