from shared.tool import tool


@tool
async def echo_async(text: str) -> str:
    """Gives back what it was given."""
    return text
