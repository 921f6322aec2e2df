"""Runs the command as `python -m cordwood`, in case the `cordwood` script is not on the path."""

import sys

from cordwood.cli import main

if __name__ == "__main__":
    sys.exit(main())
