"""What to do about a set-up command that failed, judged by its output."""

from __future__ import annotations

import re

from infra.local.dev.console import DevError, last_lines
from infra.local.dev.processes import CommandError

_DISK_FULL = re.compile(r"No space left on device|ENOSPC|[Dd]isk quota exceeded")
_NO_NETWORK = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|NewConnectionError|ConnectTimeout"
    r"|Temporary failure in name resolution|[Nn]ame or service not known|nodename nor servname|dns error"
    r"|error sending request|[Cc]onnection refused|Network is unreachable|timed out|from versions: none"
)

DISK_FULL_HINT = "The disk is full: free some space (about 600 MB are needed), then run the command again."


def command_error(what: str, failure: CommandError, otherwise: str) -> DevError:
    """The error to show for a failed set-up command. `otherwise`: the hint when its output names no cause."""
    if _DISK_FULL.search(failure.output):
        hint = DISK_FULL_HINT
    elif _NO_NETWORK.search(failure.output):
        hint = (
            "The package registry could not be reached: check the network, and HTTPS_PROXY or the registry "
            "settings of pip and npm if you are behind a proxy. Then run the command again."
        )
    else:
        hint = otherwise
    return DevError(what, hint, details=last_lines(failure.output))
