"""``python -m warpstack``."""

import sys

from warpstack.cli import main

if __name__ == "__main__":
    sys.exit(main())
