"""``python -m sparktui``."""

from __future__ import annotations

import sys

from sparktui.cli import main

if __name__ == "__main__":
    sys.exit(main())
