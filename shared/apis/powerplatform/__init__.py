"""The Power Platform API for tools: `from shared.apis import powerplatformAPI`. See docs/dataverse.md."""

from shared.apis.powerplatform.api import CATEGORIES, PowerPlatformApi
from shared.errors import PowerPlatformError

__all__ = ["CATEGORIES", "PowerPlatformApi", "PowerPlatformError", "powerplatformAPI"]

powerplatformAPI = PowerPlatformApi()  # noqa: N816 - the contract's own spelling
