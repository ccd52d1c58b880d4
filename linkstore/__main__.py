"""``python -m linkstore``: the command line."""

from __future__ import annotations

from linkstore.cli import main

if __name__ == "__main__":
    main()
