// Everything that the app needs on Azure, in a resource group of its own. `azd up` deploys it; docs/deploy.md says
// how, and what was never run. Names come from the environment's name, so one deployment meets only its own.
targetScope = 'subscription'

@minLength(1)
@maxLength(40)
@description('The name of the azd environment: names of resources come from it.')
param environmentName string

@minLength(1)
@description('Where all resources are. The Flex Consumption plan is not in every region.')
@metadata({
  azd: {
    type: 'location'
  }
})
param location string

@description('Whether the app reaches its storage through a virtual network, and nobody else does.')
param virtualNetwork bool = false

@description('The client id of an app registration: callers then sign in with Microsoft Entra instead of the MCP key.')
param entraClientId string = ''

@description('Client ids of the applications that may call for their users, with commas between them.')
param entraAllowedClients string = ''

@description('Whether the secret mcp-auth-tokens of the vault holds tokens of named owners.')
param namedOwners bool = false

@description('Whether the secret toolbox-seal-keys of the vault holds older keys, while the key is exchanged.')
param olderSealKeys bool = false

@minValue(1)
@maxValue(365)
@description('For how many days a job is kept after it has ended, with its result, log and files.')
param retentionDays int = 7

@allowed([
  'Standard_LRS'
  'Standard_ZRS'
  'Standard_GRS'
  'Standard_GZRS'
])
@description('How storage is copied. Not every region has zones (ZRS).')
param storageSku string = 'Standard_LRS'

@allowed([
  512
  2048
  4096
])
@description('The memory of an instance.')
param instanceMemoryMB int = 2048

@minValue(1)
@maxValue(1000)
@description('The most instances that each function scales to.')
param maximumInstanceCount int = 40

@minValue(0)
@maxValue(100)
@description('Instances that wait for HTTP calls all the time, and cost all the time. 0: the first call starts one.')
param alwaysReadyInstances int = 0

@description('Whether nobody can purge the vault before its time. It cannot be switched off again.')
param purgeProtection bool = false

var token = toLower(uniqueString(subscription().id, environmentName, location))
var tags = {
  'azd-env-name': environmentName
}

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: 'rg-${environmentName}'
  location: location
  tags: tags
}

module identity 'modules/identity.bicep' = {
  name: 'identity'
  scope: group
  params: {
    name: 'id-${token}'
    location: location
    tags: tags
  }
}

module monitoring 'modules/monitoring.bicep' = {
  name: 'monitoring'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    principalId: identity.outputs.principalId
  }
}

module storage 'modules/storage.bicep' = {
  name: 'storage'
  scope: group
  params: {
    name: 'st${token}'
    location: location
    tags: tags
    principalId: identity.outputs.principalId
    workspaceId: monitoring.outputs.workspaceId
    retentionDays: retentionDays
    sku: storageSku
    isPrivate: virtualNetwork
  }
}

module vault 'modules/vault.bicep' = {
  name: 'vault'
  scope: group
  params: {
    name: 'kv-${token}'
    location: location
    tags: tags
    principalId: identity.outputs.principalId
    deployerId: deployer().objectId
    workspaceId: monitoring.outputs.workspaceId
    purgeProtection: purgeProtection
  }
}

module network 'modules/network.bicep' = if (virtualNetwork) {
  name: 'network'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    storageId: storage.outputs.id
  }
}

module app 'modules/app.bicep' = {
  name: 'app'
  scope: group
  params: {
    name: 'func-${token}'
    planName: 'plan-${token}'
    location: location
    tags: tags
    identityId: identity.outputs.id
    identityClientId: identity.outputs.clientId
    blobEndpoint: storage.outputs.blobEndpoint
    queueEndpoint: storage.outputs.queueEndpoint
    tableEndpoint: storage.outputs.tableEndpoint
    packageContainer: storage.outputs.packageContainer
    vaultUri: vault.outputs.uri
    insightsConnection: monitoring.outputs.insightsConnection
    workspaceId: monitoring.outputs.workspaceId
    subnetId: network.?outputs.appSubnetId ?? ''
    entraClientId: entraClientId
    entraAllowedClients: empty(entraAllowedClients) ? [] : split(entraAllowedClients, ',')
    namedOwners: namedOwners
    olderSealKeys: olderSealKeys
    retentionDays: retentionDays
    instanceMemoryMB: instanceMemoryMB
    maximumInstanceCount: maximumInstanceCount
    alwaysReadyInstances: alwaysReadyInstances
  }
}

// azd writes these into its environment; the hook and the person who deploys read them. None of them is secret.
output AZURE_RESOURCE_GROUP string = group.name
output AZURE_KEY_VAULT_NAME string = vault.outputs.name
output AZURE_FUNCTION_APP_NAME string = app.outputs.name
output AZURE_STORAGE_ACCOUNT_NAME string = storage.outputs.name
@description('For connections that sign in as the app: the identity as Dataverse and Power Platform know it.')
output AZURE_IDENTITY_CLIENT_ID string = identity.outputs.clientId
output MCP_ENDPOINT string = '${app.outputs.url}/runtime/webhooks/mcp'
@description('The page with the tools and the jobs.')
output PAGE_URL string = empty(entraClientId) ? '${app.outputs.url}/' : '${app.outputs.url}/.auth/login/aad?post_login_redirect_uri=/'
@description('What prints the key that MCP clients send as x-functions-key. With Entra sign-in there is none.')
output MCP_KEY_COMMAND string = empty(entraClientId) ? 'az functionapp keys list --resource-group ${group.name} --name ${app.outputs.name} --query systemKeys.mcp_extension --output tsv' : ''
