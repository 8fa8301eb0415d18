"""The toolbox's own app, every trigger of it, with tools that record their runs. See tests/integration/faults.

FAULTS_RESEND_AFTER_MS: how long a pending job's message is believed in, instead of 15 minutes.
"""

import importlib.util
import os
import sys
from datetime import timedelta
from pathlib import Path
from unittest import mock

# The host puts only the app's own folder on the path; the toolbox is the repository's.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from shared import runtime
from shared.jobs import repair

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
resend_after = timedelta(milliseconds=int(os.environ["FAULTS_RESEND_AFTER_MS"]))
mock.patch.object(repair, "RESEND_AFTER", resend_after).start()

spec = importlib.util.spec_from_file_location("toolbox_function_app", ROOT / "function_app.py")
assert spec is not None
assert spec.loader is not None
toolbox = importlib.util.module_from_spec(spec)
made = runtime.Runtime(HERE / "fault_tools")
with mock.patch.object(runtime, "Runtime", return_value=made):
    spec.loader.exec_module(toolbox)
app = toolbox.app
