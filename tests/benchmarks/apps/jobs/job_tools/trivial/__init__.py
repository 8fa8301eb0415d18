from shared.tool import tool


@tool(modes=("two-way", "one-way"), execution_modes=("inline", "headless"))
def trivial(text: str) -> dict[str, str]:
    """Gives back what it was given."""
    return {"text": text}
