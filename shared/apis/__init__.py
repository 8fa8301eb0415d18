"""The APIs that tools call: `from shared.apis import toolboxAPI, dataverseAPI, powerplatformAPI`.

A headless entry finds them in its own namespace as well, also under `window` and `globalThis`, as in the
original. They are loaded when first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.apis.dataverse import dataverseAPI as dataverseAPI
    from shared.apis.powerplatform import powerplatformAPI as powerplatformAPI
    from shared.apis.toolbox import toolboxAPI as toolboxAPI

_HOME = {
    "dataverseAPI": "shared.apis.dataverse",
    "powerplatformAPI": "shared.apis.powerplatform",
    "toolboxAPI": "shared.apis.toolbox",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"shared.apis has no '{name}'; it offers {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOME[name]), name)
