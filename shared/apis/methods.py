"""The methods of the APIs by name, for whoever must not load the APIs. A test holds them complete."""

from __future__ import annotations

from typing import Final

DATAVERSE: Final = "dataverseAPI"
POWER_PLATFORM: Final = "powerplatformAPI"

_READ: Final = (
    "buildLabel", "fetchXmlQuery", "getAllEntitiesMetadata", "getAttributeODataType", "getCSDLDocument",
    "getEntityMetadata", "getEntityRelatedMetadata", "getEntitySetName", "getImportJobStatus", "getSolutions",
    "queryData", "retrieve", "retrieveMultiple",
)  # fmt: skip
#: `execute`, `executeBatch` and `executeTransaction` may read, and may do anything else.
_WRITE: Final = (
    "associate", "create", "createAttribute", "createEntityDefinition", "createGlobalOptionSet",
    "createMultiple", "createPolymorphicLookupAttribute", "createRelationship", "delete", "deleteAttribute",
    "deleteEntityDefinition", "deleteGlobalOptionSet", "deleteOptionValue", "deleteRelationship",
    "deploySolution", "disassociate", "execute", "executeBatch", "executeTransaction", "insertOptionValue",
    "orderOption", "publishCustomizations", "update", "updateAttribute", "updateEntityDefinition",
    "updateGlobalOptionSet", "updateMultiple", "updateOptionValue", "updateRelationship",
)  # fmt: skip
#: Give rows one by one, to Python code: nothing that could be sent to a window.
ITERATING: Final = ("iterateFetchXml", "iterateQuery")
CATEGORIES: Final = (
    "Analytics", "AppManagement", "Authorization", "Connectivity", "CopilotStudio", "Dynamics",
    "EnvironmentManagement", "Governance", "Licensing", "PowerApps", "PowerAutomate", "PowerPages",
    "ResourceQuery", "UserManagement", "WorkflowAgents",
)  # fmt: skip
_VERBS: Final = ("Post", "Put", "Patch", "Delete")

#: Change nothing: any window may call them.
READING: Final = frozenset(
    [f"{DATAVERSE}.{name}" for name in _READ] + [f"{POWER_PLATFORM}.{name}.Get" for name in CATEGORIES]
)
#: All that a window may be allowed to call.
OFFERED: Final = READING.union(
    [f"{DATAVERSE}.{name}" for name in _WRITE],
    [f"{POWER_PLATFORM}.{name}.{verb}" for name in CATEGORIES for verb in _VERBS],
)
