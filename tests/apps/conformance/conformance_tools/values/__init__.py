"""Tools that work with plain values: for agents, and for values that nobody thought of."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from shared.tool import Context, ToolAnnotations, tool


class Product(BaseModel):
    """What `multiply` answers."""

    product: int
    execution_mode: str


@tool(
    execution_modes=("inline", "headless"),
    modes=("two-way", "one-way"),
    default_mode="two-way",
    annotations=ToolAnnotations(read_only=True),
)
def multiply(
    a: Annotated[int, Field(description="The first factor.")],
    b: Annotated[int, Field(description="The second factor.")],
    *,
    context: Context,
) -> Product:
    """Multiplies two whole numbers, in the call or as a job."""
    context.update_progress(50, "multiplying")
    return Product(product=a * b, execution_mode=str(context.execution_mode))


# Null for a required argument would be refused by the host.
@tool
def echo_any(value: Any = None) -> Any:
    """Answers with the value it was given, whatever that is."""
    return value
