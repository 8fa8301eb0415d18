"""The tool: its declaration, and progress and log lines for whoever waits."""

import time
from typing import Annotated, Final

from pydantic import Field

from shared.tool import Context, McpImageContent, McpToolResponse, ToolAnnotations, tool
from tools.csv_profile.model import CsvProfile
from tools.csv_profile.profile import profile_csv

_LOG_EVERY: Final = 25
"""Per cents from one line of the log to the next."""


@tool(
    title="Profile a CSV text",
    result_schema=CsvProfile,
    modes=("one-way", "two-way"),
    default_mode="two-way",
    execution_modes=("inline", "headless"),
    default_execution_mode="inline",
    timeout_ms=300_000,
    annotations=ToolAnnotations(read_only=True, idempotent=True, destructive=False, open_world=False),
)
def csv_profile(
    csv: Annotated[str, Field(description="The CSV text itself (not a path or URL), decoded to Unicode.")],
    delimiter: Annotated[
        str | None,
        Field(description="The character between cells. Left out: comma, semicolon, tab or pipe, as fits."),
    ] = None,
    *,
    header: Annotated[
        bool | None,
        Field(description="Whether the first row holds the columns' names. Left out: detected from the data."),
    ] = None,
    context: Context,
) -> McpToolResponse:
    """Profile a CSV text: rows, and for every column its type, missing and distinct values and range.

    Numeric columns also have a mean, text columns their most frequent values and lengths. Whatever looks wrong
    (ragged rows, duplicate names, a wrong encoding) is named in `warnings`. A histogram of the first numeric
    column comes as a PNG image. Run texts of many megabytes headless: they report their progress.
    """
    started = time.perf_counter()
    profile, image = profile_csv(csv, delimiter, header, _Progress(context))
    context.logger.info(
        f"Profiled {profile.row_count:,} rows and {profile.column_count:,} columns with "
        f"{len(profile.warnings)} warning(s) in {time.perf_counter() - started:.1f} s."
    )
    content = [McpImageContent(data=image, mime_type="image/png")] if image else []
    # Without the fields that do not apply to a column's type: agents pay for every one of them.
    return McpToolResponse(
        content=content, structured_content=profile.model_dump(mode="json", exclude_none=True)
    )


class _Progress:
    """Passes progress on when another whole per cent is done, and logs each quarter."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._percent = 0

    def started(self, message: str) -> None:
        self._context.logger.info(message)

    def advanced(self, share: float, rows: int) -> None:
        percent = int(share * 100)
        if percent <= self._percent:
            return
        if self._percent // _LOG_EVERY < percent // _LOG_EVERY < 100 // _LOG_EVERY:
            self._context.logger.info(f"{percent}% read: {rows:,} rows.")
        self._percent = percent
        self._context.update_progress(percent, f"{rows:,} rows")
