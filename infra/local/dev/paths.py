"""Where things are in the checkout."""

from __future__ import annotations

from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
VENV = REPO / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
AGENTS = REPO / "tests" / "agents"  # a folder for each MCP client, with requirements of its own
AGENT_VENVS = REPO / ".venv-agents"  # a virtual environment for each of them
NODE_MODULES = REPO / "node_modules"
AZURITE_JS = NODE_MODULES / "azurite" / "dist" / "src" / "azurite.js"
AZURITE_DATA = REPO / ".azurite"
PACKAGE = REPO / "dist" / "app.zip"
STATE = REPO / ".toolbox"  # locks and log files of dev.py itself
HOST_LOG = STATE / "host.log"  # of the last run that went wrong
LOCAL_SETTINGS = REPO / "local.settings.json"
EXAMPLE_SETTINGS = REPO / "local.settings.json.example"
REQUIREMENTS = (REPO / "requirements.txt", REPO / "requirements-dev.txt")
NPM_FILES = (REPO / "package.json", REPO / "package-lock.json", REPO / ".npmrc")
