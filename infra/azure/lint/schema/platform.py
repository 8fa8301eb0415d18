"""Resource groups, identities, roles, vaults, telemetry. Source: their "Bicep resource definition" pages."""

from __future__ import annotations

from infra.azure.lint.schema.model import TAGS, ResourceType, array, need, obj, one_of, read
from infra.azure.lint.types import BOOL, STR, Int, Obj, Prop, Type

_LOCATED: dict[str, Type | Prop] = {"name": need(STR), "location": need(STR), "tags": TAGS}

TYPES = (
    ResourceType("Microsoft.Resources/resourceGroups", "2024-03-01", obj(**_LOCATED), target="subscription"),
    ResourceType(
        "Microsoft.ManagedIdentity/userAssignedIdentities",
        "2023-01-31",
        obj(**_LOCATED, properties=read(obj(principalId=read(), clientId=read(), tenantId=read()))),
    ),
    ResourceType(
        "Microsoft.Authorization/roleAssignments",
        "2022-04-01",
        obj(
            name=need(STR),
            properties=need(
                obj(
                    roleDefinitionId=need(STR),
                    principalId=need(STR),
                    principalType=one_of("User", "Group", "ServicePrincipal", "ForeignGroup", "Device"),
                    description=STR,
                    condition=STR,
                    conditionVersion=one_of("2.0"),
                )
            ),
        ),
        extension=True,
    ),
    ResourceType(
        "Microsoft.KeyVault/vaults",
        "2023-07-01",
        obj(
            **_LOCATED,
            properties=need(
                obj(
                    tenantId=need(STR),
                    sku=need(obj(family=need(one_of("A")), name=need(one_of("standard", "premium")))),
                    enableRbacAuthorization=BOOL,
                    enableSoftDelete=BOOL,
                    softDeleteRetentionInDays=Int(low=7, high=90),
                    enablePurgeProtection=BOOL,
                    enabledForDeployment=BOOL,
                    enabledForTemplateDeployment=BOOL,
                    publicNetworkAccess=one_of("Enabled", "Disabled"),
                    networkAcls=obj(
                        bypass=one_of("AzureServices", "None"),
                        defaultAction=one_of("Allow", "Deny"),
                        ipRules=array(obj(value=need(STR))),
                        virtualNetworkRules=array(obj(id=need(STR))),
                    ),
                    vaultUri=read(),
                    provisioningState=read(),
                )
            ),
        ),
    ),
    ResourceType(
        "Microsoft.OperationalInsights/workspaces",
        "2023-09-01",
        obj(
            **_LOCATED,
            properties=obj(
                sku=obj(name=need(one_of("PerGB2018", "CapacityReservation", "LACluster"))),
                # 4 to 730 days exist only for special plans.
                retentionInDays=Int(low=30, high=730),
                features=obj(
                    disableLocalAuth=BOOL,
                    enableDataExport=BOOL,
                    enableLogAccessUsingOnlyResourcePermissions=BOOL,
                    immediatePurgeDataOn30Days=BOOL,
                ),
                workspaceCapping=obj(dailyQuotaGb=Int(low=-1)),
                publicNetworkAccessForIngestion=one_of("Enabled", "Disabled"),
                publicNetworkAccessForQuery=one_of("Enabled", "Disabled"),
                customerId=read(),
                provisioningState=read(),
            ),
        ),
    ),
    ResourceType(
        "Microsoft.Insights/components",
        "2020-02-02",
        obj(
            **_LOCATED,
            kind=need(one_of("web", "ios", "other", "store", "java", "phone")),
            properties=need(
                obj(
                    Application_Type=need(one_of("web", "other")),
                    WorkspaceResourceId=STR,
                    IngestionMode=one_of("LogAnalytics", "ApplicationInsights"),
                    DisableLocalAuth=BOOL,
                    DisableIpMasking=BOOL,
                    RetentionInDays=Int(frozenset({30, 60, 90, 120, 180, 270, 365, 550, 730})),
                    SamplingPercentage=Int(low=0, high=100),
                    publicNetworkAccessForIngestion=one_of("Enabled", "Disabled"),
                    publicNetworkAccessForQuery=one_of("Enabled", "Disabled"),
                    ConnectionString=read(),
                    InstrumentationKey=read(),
                    AppId=read(),
                )
            ),
        ),
    ),
    ResourceType(
        "Microsoft.Insights/diagnosticSettings",
        "2021-05-01-preview",
        obj(
            name=need(STR),
            properties=need(
                obj(
                    workspaceId=STR,
                    storageAccountId=STR,
                    logAnalyticsDestinationType=one_of("Dedicated", "AzureDiagnostics"),
                    logs=array(
                        obj(
                            # Of the resources that we have. Source: "Supported resource log categories".
                            category=one_of(
                                "AuditEvent",
                                "AppServiceAuthenticationLogs",
                                "FunctionAppLogs",
                                "StorageDelete",
                                "StorageRead",
                                "StorageWrite",
                            ),
                            categoryGroup=one_of("audit", "allLogs"),
                            enabled=need(BOOL),
                        )
                    ),
                    metrics=array(
                        obj(
                            category=need(one_of("AllMetrics", "Transaction", "Capacity")),
                            enabled=need(BOOL),
                            timeGrain=STR,
                        )
                    ),
                )
            ),
        ),
        extension=True,
    ),
)

#: Built-in roles by the name that a variable for them has. Source: "Azure built-in roles".
ROLES = {
    "keyVaultSecretsOfficer": "b86a8fe4-44ce-4948-aee5-eccb2c155cd7",
    "keyVaultSecretsUser": "4633458b-17de-408a-b874-0445c86b69e6",
    "monitoringMetricsPublisher": "3913510d-42f4-4e42-8a64-420c390055eb",
    "storageBlobDataContributor": "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
    "storageBlobDataOwner": "b7e6dc6d-f1e8-4753-8033-0f276bb0955b",
    "storageQueueDataContributor": "974c5e8b-45b9-4653-ba55-5f855dd0fb88",
    "storageQueueDataMessageProcessor": "8a0f0c08-91a1-4084-bc3d-661d67233fed",
    "storageTableDataContributor": "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3",
}

_SUFFIXES = obj(storage=STR, keyvaultDns=STR, sqlServerHostname=STR, acrLoginServer=STR)
#: What `environment()` gives, as far as anybody reads it.
ENVIRONMENT = Obj(
    obj(
        name=STR,
        resourceManager=STR,
        portal=STR,
        authentication=obj(loginEndpoint=STR, tenant=STR, identityProvider=STR, audiences=array(STR)),
        suffixes=_SUFFIXES,
    ).props
)
