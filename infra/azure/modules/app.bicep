// The Function App on the Flex Consumption plan, and its settings.
param name string
param planName string
param location string
param tags object
param identityId string
param identityClientId string
param blobEndpoint string
param queueEndpoint string
param tableEndpoint string
param packageContainer string
param vaultUri string
param insightsConnection string
param workspaceId string

@description('Empty: the app is in no virtual network.')
param subnetId string

@description('Empty: callers show the MCP key.')
param entraClientId string
param entraAllowedClients string[]
param namedOwners bool
param olderSealKeys bool
param retentionDays int

@allowed([
  512
  2048
  4096
])
param instanceMemoryMB int
param maximumInstanceCount int
param alwaysReadyInstances int

var signIn = !empty(entraClientId)

// Each is a setting of docs/settings.md or of the platform. Flex Consumption takes runtime and version from
// functionAppConfig, and refuses the settings that other plans have for them.
var baseSettings = {
  // The host and the app reach storage as the identity; there is no key.
  AzureWebJobsStorage__blobServiceUri: blobEndpoint
  AzureWebJobsStorage__queueServiceUri: queueEndpoint
  AzureWebJobsStorage__tableServiceUri: tableEndpoint
  AzureWebJobsStorage__credential: 'managedidentity'
  AzureWebJobsStorage__clientId: identityClientId
  APPLICATIONINSIGHTS_CONNECTION_STRING: insightsConnection
  APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identityClientId};Authorization=AAD'
  // Which identity azure-identity takes where a connection of a tool names none.
  AZURE_CLIENT_ID: identityClientId
  AzureWebJobsDisableHomepage: 'true'
  MCP_AUTH_TOKEN: '@Microsoft.KeyVault(SecretUri=${vaultUri}secrets/mcp-auth-token)'
  TOOLBOX_SEAL_KEY: '@Microsoft.KeyVault(SecretUri=${vaultUri}secrets/toolbox-seal-key)'
  TOOLBOX_RETENTION_HOURS: string(retentionDays * 24)
}
// An optional secret is named only when it is there: a reference to one that is missing stops the app's start.
var ownerSettings = namedOwners ? {
  MCP_AUTH_TOKENS: '@Microsoft.KeyVault(SecretUri=${vaultUri}secrets/mcp-auth-tokens)'
} : {}
var olderKeySettings = olderSealKeys ? {
  TOOLBOX_SEAL_KEYS: '@Microsoft.KeyVault(SecretUri=${vaultUri}secrets/toolbox-seal-keys)'
} : {}
// Whoever calls has signed in before the host sees the call, so the host asks for no key of its own; and only then is
// the principal's header the platform's. These four belong together.
var signInSettings = signIn ? {
  AzureFunctionsJobHost__extensions__mcp__system__webhookAuthorizationLevel: 'Anonymous'
  OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID: identityClientId
  TOOLBOX_TRUST_EASYAUTH: '1'
  WEBSITE_AUTH_PRM_DEFAULT_WITH_SCOPES: 'api://${entraClientId}/user_impersonation'
} : {}
// What this deployment adds: name -> value. {vaultUri} stands for the vault's address, for references to its secrets.
var ownSettings = mapValues(loadJsonContent('../app-settings.json'), value => replace(value, '{vaultUri}', vaultUri))

resource plan 'Microsoft.Web/serverfarms@2024-11-01' = {
  name: planName
  location: location
  tags: tags
  kind: 'functionapp'
  sku: {
    name: 'FC1'
    tier: 'FlexConsumption'
  }
  properties: {
    reserved: true
  }
}

resource app 'Microsoft.Web/sites@2024-11-01' = {
  name: name
  location: location
  tags: union(tags, {
    'azd-service-name': 'app'
  })
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    clientAffinityEnabled: false
    keyVaultReferenceIdentity: identityId
    virtualNetworkSubnetId: empty(subnetId) ? null : subnetId
    siteConfig: {
      ftpsState: 'Disabled'
      http20Enabled: true
      minTlsVersion: '1.2'
      scmMinTlsVersion: '1.2'
    }
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${blobEndpoint}${packageContainer}'
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identityId
          }
        }
      }
      runtime: {
        name: 'python'
        version: '3.13'
      }
      scaleAndConcurrency: {
        instanceMemoryMB: instanceMemoryMB
        maximumInstanceCount: maximumInstanceCount
        alwaysReady: alwaysReadyInstances == 0 ? [] : [
          {
            name: 'http'
            instanceCount: alwaysReadyInstances
          }
        ]
      }
    }
  }
}

resource settings 'Microsoft.Web/sites/config@2024-11-01' = {
  parent: app
  name: 'appsettings'
  properties: union(ownSettings, baseSettings, ownerSettings, olderKeySettings, signInSettings)
  // The key goes, and the principal's header counts, only once the platform turns away who has not signed in.
  dependsOn: [
    authentication
  ]
}

// Nobody publishes with a password: azd and az sign in.
resource publishing 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-11-01' = [
  for way in ['ftp', 'scm']: {
    parent: app
    name: way
    properties: {
      allow: false
    }
  }
]

module authentication 'authentication.bicep' = if (signIn) {
  name: 'authentication'
  params: {
    appName: app.name
    clientId: entraClientId
    allowedClients: entraAllowedClients
  }
}

resource metrics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'to-log-analytics'
  scope: app
  properties: {
    workspaceId: workspaceId
    // The app's own log is in Application Insights: FunctionAppLogs would be the same lines, paid for twice.
    logs: signIn ? [
      {
        category: 'AppServiceAuthenticationLogs'
        enabled: true
      }
    ] : []
    metrics: [
      {
        category: 'AllMetrics'
        enabled: true
      }
    ]
  }
}

output name string = app.name
output url string = 'https://${app.properties.defaultHostName}'
