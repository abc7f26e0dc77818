"""`python -m usp` is the same as `usp`."""

import sys

from usp.cli import main

if __name__ == "__main__":
    sys.exit(main())
