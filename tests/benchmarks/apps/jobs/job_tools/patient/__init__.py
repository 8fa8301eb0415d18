import time

from shared.tool import tool


@tool(modes=("two-way", "one-way"), execution_modes=("inline", "headless"))
def patient(seconds: float) -> dict[str, float]:
    """Takes its time and says nothing meanwhile."""
    time.sleep(seconds)
    return {"seconds": seconds}
