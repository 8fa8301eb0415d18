"""The Dataverse Web API for tools: `from shared.apis import dataverseAPI`. See docs/dataverse.md."""

from shared.apis.dataverse.api import DataverseApi
from shared.apis.dataverse.labels import AttributeMetadataType
from shared.errors import DataverseError

__all__ = ["AttributeMetadataType", "DataverseApi", "DataverseError", "dataverseAPI"]

dataverseAPI = DataverseApi()  # noqa: N816 - the contract's own spelling
