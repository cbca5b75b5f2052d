"""python -m tamarack_lab."""

import sys

try:
    from .cli import main

    sys.exit(main())
except KeyboardInterrupt:
    # While the libraries are loaded, or again while it ends.
    print("interrupted", file=sys.stderr)
    sys.exit(130)
