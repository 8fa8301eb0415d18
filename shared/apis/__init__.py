"""The APIs that tools call: `from shared.apis import toolboxAPI`.

A headless entry finds them in its own namespace as well, as in the original.
"""

from shared.apis.toolbox import toolboxAPI

__all__ = ["toolboxAPI"]
