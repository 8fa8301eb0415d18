"""An app with tools that show what a tool may declare and learn. Driven by tests/acceptance/test_surface.py."""

import sys
from pathlib import Path

# The host puts only the app's own folder on the path; the toolbox is the repository's.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from tests.apps.toolbox import toolbox_with

app = toolbox_with(Path(__file__).parent / "surface_tools").app
