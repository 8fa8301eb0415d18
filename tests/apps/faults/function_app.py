"""The toolbox's own app with tools that record their runs. See tests/integration/faults.

FAULTS_RESEND_AFTER_MS: how long a pending job's message is believed in, instead of 15 minutes.
"""

import os
import sys
from datetime import timedelta
from pathlib import Path
from unittest import mock

# The host puts only the app's own folder on the path; the toolbox is the repository's.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from shared.jobs import repair
from tests.apps.toolbox import toolbox_with

resend_after = timedelta(milliseconds=int(os.environ["FAULTS_RESEND_AFTER_MS"]))
mock.patch.object(repair, "RESEND_AFTER", resend_after).start()

app = toolbox_with(Path(__file__).parent / "fault_tools").app
