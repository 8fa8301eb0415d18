"""What is counted of records and lines that were not kept."""

from __future__ import annotations

from shared.telemetry import names
from shared.telemetry.spans import count, switch


def records_dropped(number: int) -> None:
    """Invocation records for which there was neither time nor storage."""
    if (out := switch.out) is not None:
        count(out, names.DROPPED, number, RECORD="invocation")
