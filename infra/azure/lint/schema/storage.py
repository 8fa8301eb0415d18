"""Microsoft.Storage at 2024-01-01. Source: "Bicep resource definition" pages of Microsoft.Storage."""

from __future__ import annotations

from infra.azure.lint.schema.model import TAGS, ResourceType, array, need, obj, one_of, read
from infra.azure.lint.types import BOOL, STR, Int, Obj

VERSION = "2024-01-01"
_ACCOUNT = "Microsoft.Storage/storageAccounts"

_ENDPOINTS = obj(blob=read(), queue=read(), table=read(), file=read(), dfs=read(), web=read())
_DAYS = Int(low=0, high=99_999)
_AGE = obj(
    daysAfterModificationGreaterThan=_DAYS,
    daysAfterLastAccessTimeGreaterThan=_DAYS,
    daysAfterLastTierChangeGreaterThan=_DAYS,
    daysAfterCreationGreaterThan=_DAYS,
)
_RETENTION = obj(enabled=BOOL, days=Int(low=1, high=365), allowPermanentDelete=BOOL)
_SKUS = one_of(
    "Standard_LRS", "Standard_ZRS", "Standard_GRS", "Standard_RAGRS", "Standard_GZRS", "Standard_RAGZRS",
    "Premium_LRS", "Premium_ZRS",
)  # fmt: skip

_PROPERTIES = obj(
    accessTier=one_of("Hot", "Cool", "Cold", "Premium"),
    allowBlobPublicAccess=BOOL,
    allowCrossTenantReplication=BOOL,
    allowSharedKeyAccess=BOOL,
    defaultToOAuthAuthentication=BOOL,
    dnsEndpointType=one_of("Standard", "AzureDnsZone"),
    isHnsEnabled=BOOL,
    isLocalUserEnabled=BOOL,
    isSftpEnabled=BOOL,
    minimumTlsVersion=one_of("TLS1_2", "TLS1_3"),
    networkAcls=obj(
        bypass=one_of("None", "Logging", "Metrics", "AzureServices"),
        defaultAction=need(one_of("Allow", "Deny")),
        ipRules=array(obj(value=need(STR), action=one_of("Allow"))),
        virtualNetworkRules=array(obj(id=need(STR), action=one_of("Allow"))),
    ),
    publicNetworkAccess=one_of("Enabled", "Disabled", "SecuredByPerimeter"),
    supportsHttpsTrafficOnly=BOOL,
    primaryEndpoints=read(_ENDPOINTS),
    primaryLocation=read(),
    provisioningState=read(),
)

_POLICY = obj(
    rules=need(
        array(
            obj(
                name=need(STR),
                type=need(one_of("Lifecycle")),
                enabled=BOOL,
                definition=need(
                    obj(
                        actions=need(
                            obj(
                                baseBlob=obj(
                                    delete=_AGE,
                                    tierToCool=_AGE,
                                    tierToCold=_AGE,
                                    tierToArchive=_AGE,
                                    tierToHot=_AGE,
                                    enableAutoTierToHotFromCool=BOOL,
                                ),
                                snapshot=Obj(rest=obj(daysAfterCreationGreaterThan=_DAYS)),
                                version=Obj(rest=obj(daysAfterCreationGreaterThan=_DAYS)),
                            )
                        ),
                        filters=obj(
                            blobTypes=need(array(one_of("blockBlob", "appendBlob"))), prefixMatch=array(STR)
                        ),
                    )
                ),
            )
        )
    )
)

_METADATA = Obj(rest=STR)


def _child(path: str, properties: Obj, *, named: bool = False) -> ResourceType:
    fixed = STR if named else one_of("default")
    return ResourceType(f"{_ACCOUNT}/{path}", VERSION, obj(name=need(fixed), properties=properties))


TYPES = (
    ResourceType(
        _ACCOUNT,
        VERSION,
        obj(
            name=need(STR),
            location=need(STR),
            tags=TAGS,
            kind=need(one_of("StorageV2", "BlobStorage", "BlockBlobStorage", "FileStorage", "Storage")),
            sku=need(obj(name=need(_SKUS))),
            identity=obj(type=need(one_of("None", "SystemAssigned", "UserAssigned"))),
            properties=_PROPERTIES,
        ),
    ),
    _child(
        "blobServices",
        obj(
            deleteRetentionPolicy=_RETENTION,
            containerDeleteRetentionPolicy=_RETENTION,
            isVersioningEnabled=BOOL,
            changeFeed=obj(enabled=BOOL, retentionInDays=Int(low=1, high=146_000)),
        ),
    ),
    _child(
        "blobServices/containers",
        obj(publicAccess=one_of("None", "Blob", "Container"), metadata=_METADATA, defaultEncryptionScope=STR),
        named=True,
    ),
    _child("queueServices", obj(cors=obj(corsRules=array(Obj(rest=STR))))),
    _child("queueServices/queues", obj(metadata=_METADATA), named=True),
    _child("tableServices", obj(cors=obj(corsRules=array(Obj(rest=STR))))),
    _child("tableServices/tables", obj(signedIdentifiers=array(obj(id=need(STR)))), named=True),
    _child("managementPolicies", obj(policy=need(_POLICY), lastModifiedTime=read())),
)
