#!/usr/bin/env python3
"""The one command of this project: `python3 dev.py run`, `test`, `check`, `bench`, `lock` (see `--help`).

Any Python from 3.8 on may start it: it finds Python 3.13, makes `.venv` with everything in it, and goes on
there. The pieces are in infra/local/dev/.
"""

import sys

# Asked before the import below: an older Python could not even read those modules.
if sys.version_info < (3, 8):
    sys.exit(
        "error: dev.py was started by Python %d.%d, and needs 3.8 or newer to start. "
        "Use another one, e.g. `python3.13 dev.py`." % sys.version_info[:2]
    )

from infra.local.dev.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
