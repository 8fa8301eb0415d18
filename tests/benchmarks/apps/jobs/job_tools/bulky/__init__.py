from shared.tool import tool


@tool(modes=("two-way", "one-way"), execution_modes=("inline", "headless"))
def bulky(size: int) -> dict[str, str]:
    """Gives back a text of that size."""
    return {"text": "x" * size}
