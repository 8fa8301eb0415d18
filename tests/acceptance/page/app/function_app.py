"""The toolbox with tools that give the page something to show. Driven by tests/acceptance/page."""

import sys
from pathlib import Path

# The host puts only the app's own folder on the path; the toolbox is the repository's.
sys.path.append(str(Path(__file__).resolve().parents[4]))

from tests.apps.toolbox import toolbox_with

app = toolbox_with(Path(__file__).parent / "page_tools").app
