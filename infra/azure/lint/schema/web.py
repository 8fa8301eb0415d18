"""Microsoft.Web at 2024-11-01. Source: "Bicep resource definition" pages of Microsoft.Web, and, for what the
Flex Consumption plan takes of them, "Flex Consumption plan deprecations" and "Automate resource deployment"."""

from __future__ import annotations

from infra.azure.lint.schema.model import TAGS, ResourceType, array, need, obj, one_of, read
from infra.azure.lint.types import BOOL, STR, Int, Obj

VERSION = "2024-11-01"
_SITE = "Microsoft.Web/sites"
_TLS = one_of("1.2", "1.3")

_FUNCTIONS = obj(
    deployment=need(
        obj(
            storage=need(
                obj(
                    type=need(one_of("blobContainer")),
                    value=need(STR),
                    authentication=need(
                        obj(
                            type=need(
                                one_of(
                                    "SystemAssignedIdentity",
                                    "UserAssignedIdentity",
                                    "StorageAccountConnectionString",
                                )
                            ),
                            userAssignedIdentityResourceId=STR,
                            storageAccountConnectionStringName=STR,
                        )
                    ),
                )
            )
        )
    ),
    runtime=need(
        obj(
            name=need(one_of("dotnet-isolated", "node", "java", "powershell", "python", "custom")),
            # Of Python; azure-functions 2.x needs 3.13. Source: "Supported languages" of Azure Functions.
            version=need(one_of("3.13")),
        )
    ),
    scaleAndConcurrency=need(
        obj(
            # A single function has a group of its own, `function:NAME`, which these files do not use.
            alwaysReady=array(
                obj(name=need(one_of("http", "blob", "durable")), instanceCount=need(Int(low=0, high=1000)))
            ),
            instanceMemoryMB=need(Int(frozenset({512, 2048, 4096}))),
            maximumInstanceCount=need(Int(low=1, high=1000)),
            triggers=obj(http=obj(perInstanceConcurrency=Int(low=1, high=1000))),
        )
    ),
    siteUpdateStrategy=obj(type=one_of("Recreate", "RollingUpdate")),
)

_SITE_CONFIG = obj(
    appSettings=array(obj(name=need(STR), value=need(STR))),
    cors=obj(allowedOrigins=array(STR), supportCredentials=BOOL),
    ftpsState=one_of("AllAllowed", "FtpsOnly", "Disabled"),
    healthCheckPath=STR,
    http20Enabled=BOOL,
    ipSecurityRestrictionsDefaultAction=one_of("Allow", "Deny"),
    minTlsVersion=_TLS,
    scmMinTlsVersion=_TLS,
)

_SITE_PROPERTIES = obj(
    serverFarmId=need(STR),
    clientAffinityEnabled=BOOL,
    clientCertEnabled=BOOL,
    clientCertMode=one_of("Required", "Optional", "OptionalInteractiveUser"),
    endToEndEncryptionEnabled=BOOL,
    functionAppConfig=need(_FUNCTIONS),
    httpsOnly=BOOL,
    keyVaultReferenceIdentity=STR,
    publicNetworkAccess=one_of("Enabled", "Disabled"),
    siteConfig=_SITE_CONFIG,
    virtualNetworkSubnetId=STR,
    defaultHostName=read(),
    hostNames=read(array(STR)),
    outboundIpAddresses=read(),
    state=read(),
)

_AUTHENTICATION = obj(
    platform=need(obj(enabled=BOOL, runtimeVersion=one_of("~1"))),
    globalValidation=need(
        obj(
            requireAuthentication=BOOL,
            unauthenticatedClientAction=one_of(
                "RedirectToLoginPage", "AllowAnonymous", "Return401", "Return403"
            ),
            redirectToProvider=STR,
            excludedPaths=array(STR),
        )
    ),
    httpSettings=obj(
        requireHttps=BOOL,
        routes=obj(apiPrefix=STR),
        forwardProxy=obj(
            convention=one_of("NoProxy", "Standard", "Custom"),
            customHostHeaderName=STR,
            customProtoHeaderName=STR,
        ),
    ),
    identityProviders=need(
        obj(
            azureActiveDirectory=obj(
                enabled=BOOL,
                isAutoProvisioned=BOOL,
                login=obj(loginParameters=array(STR), disableWWWAuthenticate=BOOL),
                registration=need(obj(openIdIssuer=need(STR), clientId=need(STR), clientSecretSettingName=STR)),
                validation=obj(
                    allowedAudiences=array(STR),
                    defaultAuthorizationPolicy=obj(
                        allowedApplications=array(STR),
                        allowedPrincipals=obj(groups=array(STR), identities=array(STR)),
                    ),
                    jwtClaimChecks=obj(allowedClientApplications=array(STR), allowedGroups=array(STR)),
                ),
            )
        )
    ),
    login=obj(
        allowedExternalRedirectUrls=array(STR),
        cookieExpiration=obj(convention=one_of("FixedTime", "IdentityProviderDerived"), timeToExpiration=STR),
        preserveUrlFragmentsForLogins=BOOL,
        routes=obj(logoutEndpoint=STR),
        tokenStore=obj(enabled=BOOL, tokenRefreshExtensionHours=Int(low=0)),
    ),
)

_NAMED = need(STR)

TYPES = (
    ResourceType(
        "Microsoft.Web/serverfarms",
        VERSION,
        obj(
            name=_NAMED,
            location=need(STR),
            tags=TAGS,
            kind=one_of("functionapp"),
            sku=need(obj(name=need(one_of("FC1")), tier=need(one_of("FlexConsumption")))),
            properties=need(obj(reserved=need(BOOL), zoneRedundant=BOOL)),
        ),
    ),
    ResourceType(
        _SITE,
        VERSION,
        obj(
            name=_NAMED,
            location=need(STR),
            tags=TAGS,
            kind=need(one_of("functionapp,linux")),
            identity=need(
                obj(
                    type=need(one_of("None", "SystemAssigned", "UserAssigned", "SystemAssigned, UserAssigned")),
                    userAssignedIdentities=Obj(rest=obj(clientId=read(), principalId=read())),
                    principalId=read(),
                    tenantId=read(),
                )
            ),
            properties=need(_SITE_PROPERTIES),
        ),
    ),
    ResourceType(
        f"{_SITE}/config",
        VERSION,
        obj(name=need(one_of("appsettings", "authsettingsV2")), properties=need(Obj(rest=STR))),
        variants={
            "appsettings": obj(name=_NAMED, properties=need(Obj(rest=STR))),
            "authsettingsV2": obj(name=_NAMED, properties=need(_AUTHENTICATION)),
        },
    ),
    ResourceType(
        f"{_SITE}/basicPublishingCredentialsPolicies",
        VERSION,
        obj(name=need(one_of("ftp", "scm")), properties=need(obj(allow=need(BOOL)))),
    ),
)
