"""The app for programs that nobody here wrote: the tools, resources and prompts that the MCP conformance suite
asks for by name, and tools for agents and for property tests.
"""

import sys
from pathlib import Path

# The host puts only the app's own folder on the path; the toolbox is the repository's.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from shared.tool.binding import trigger_fields
from tests.apps.conformance.explicit_schema import ExplicitSchemaTool
from tests.apps.toolbox import toolbox_with

toolbox = toolbox_with(Path(__file__).parent / "conformance_tools")
app = toolbox.app

entry = ExplicitSchemaTool()
declare = app.mcp_tool_trigger(arg_name="payload", **trigger_fields(entry.spec))
app.function_name(entry.spec.function_name)(declare(toolbox.toolbox.runtime._invoker.trigger(entry)))
