"""Scans of jobs in the table service's own language."""

from __future__ import annotations

from shared.jobs import keys
from shared.jobs.store import Query


def condition(query: Query) -> tuple[str, dict[str, str]]:
    """The filter of a scan, in the table service's language, and the values in it."""
    values = {"row": keys.JOB_ROW, "before": query.before or keys.END_OF_JOBS}
    terms = ["RowKey eq @row", "PartitionKey lt @before"]
    if query.start:
        terms.append("PartitionKey ge @start")
        values["start"] = query.start
    if query.owner is not None:
        terms.append("owner eq @owner")
        values["owner"] = query.owner
    if query.tool_name is not None:
        terms.append("toolName eq @tool")
        values["tool"] = query.tool_name
    if query.statuses:
        values |= {f"status{number}": str(status) for number, status in enumerate(query.statuses)}
        among = " or ".join(f"status eq @status{number}" for number in range(len(query.statuses)))
        terms.append(f"( {among} )")  # the SDK finds its parameters by the blanks around them
    return " and ".join(terms), values
