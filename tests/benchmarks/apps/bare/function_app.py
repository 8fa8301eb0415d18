"""What a cold start is compared with: an app of one tool that says hello, and nothing else."""

import azure.functions as func

app = func.FunctionApp()


@app.function_name("hello")
@app.mcp_tool_trigger(arg_name="payload", tool_name="hello", description="Says hello.")
async def hello(payload: str) -> str:
    return "hello"
