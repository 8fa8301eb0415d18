from shared.tool import tool


@tool
def echo_sync(text: str) -> str:
    """Gives back what it was given."""
    return text
