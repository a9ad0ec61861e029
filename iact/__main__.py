"""`python -m iact` is the command `iact`."""

import sys

from iact.cli import main

sys.exit(main())
