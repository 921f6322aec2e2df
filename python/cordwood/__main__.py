"""Lets `python -m cordwood` run the command line, for systems where the script `cordwood` is not on the path."""

import sys

from cordwood.cli import main

if __name__ == "__main__":
    sys.exit(main())
