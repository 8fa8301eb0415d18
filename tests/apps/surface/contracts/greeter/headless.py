from typing import Any


def invokeHeadless(input: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: A002
    context.logger.info("greeting")
    context.updateProgress(50, "half way")
    words = ["hello"] * input.get("times", 1)
    return {"greeting": f"{' '.join(words)} {input['name']}", "mode": context.invocationMode}
