"""The resource types that infra/azure uses, written down from their documentation: what each property may be.

Only these types, at these versions, and of their properties those that this project has a use for: a new one is
added here first, with a look at its page.
"""

from __future__ import annotations

from infra.azure.lint.schema import network, platform, storage, web
from infra.azure.lint.schema.model import ResourceType

RESOURCE_TYPES: dict[str, ResourceType] = {
    known.name: known for known in (*platform.TYPES, *storage.TYPES, *web.TYPES, *network.TYPES)
}
