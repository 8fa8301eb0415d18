// Sign-in with Microsoft Entra in front of the app (built-in authentication). Not verified on Azure: see docs/deploy.md.
// A call without a token is answered 401 with the address of the protected-resource metadata, as MCP clients expect.
param appName string

@description('The app registration of this server.')
param clientId string

@description('Client ids that may ask for tokens; none: only the registration itself.')
param allowedClients string[]

resource app 'Microsoft.Web/sites@2024-11-01' existing = {
  name: appName
}

resource authentication 'Microsoft.Web/sites/config@2024-11-01' = {
  parent: app
  name: 'authsettingsV2'
  properties: {
    platform: {
      enabled: true
      runtimeVersion: '~1'
    }
    globalValidation: {
      requireAuthentication: true
      unauthenticatedClientAction: 'Return401'
      // What says nothing and must be answered to anybody: whether the app is up.
      excludedPaths: [
        '/healthz'
      ]
    }
    httpSettings: {
      requireHttps: true
    }
    identityProviders: {
      azureActiveDirectory: {
        enabled: true
        registration: {
          openIdIssuer: '${environment().authentication.loginEndpoint}${tenant().tenantId}/v2.0'
          clientId: clientId
          // No secret: the app's identity vouches for the registration (a federated credential of it).
          clientSecretSettingName: 'OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID'
        }
        validation: {
          allowedAudiences: [
            'api://${clientId}'
            clientId
          ]
          defaultAuthorizationPolicy: {
            allowedApplications: union([clientId], allowedClients)
          }
        }
      }
    }
    login: {
      tokenStore: {
        enabled: false
      }
    }
  }
}
