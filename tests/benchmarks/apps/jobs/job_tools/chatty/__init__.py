import time

from shared.tool import Context, tool


@tool(modes=("two-way", "one-way"), execution_modes=("inline", "headless"))
def chatty(text: str, seconds: float = 0.0, *, context: Context) -> dict[str, str]:
    """Logs 50 lines and reports progress 20 times, within that many seconds."""
    for number in range(50):
        context.logger.info(f"line {number} of a log that tells what a tool is doing")
        time.sleep(seconds / 50)
        if number % 5 < 2:
            context.update_progress(number * 2, f"step {number}")
    return {"text": text}
