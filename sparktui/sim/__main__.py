"""``python -m sparktui.sim serve MODEL …``."""

from __future__ import annotations

import sys

from sparktui.sim.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
