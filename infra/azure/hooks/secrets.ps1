#!/usr/bin/env pwsh
# Makes the app's secrets in the vault, each one once: what secrets.sh does, for Windows. See there why.
$ErrorActionPreference = 'Stop'
Set-StrictMode -Version Latest

foreach ($name in 'AZURE_KEY_VAULT_NAME', 'AZURE_RESOURCE_GROUP', 'AZURE_FUNCTION_APP_NAME') {
    if (-not [Environment]::GetEnvironmentVariable($name)) { throw "Run this as the hook of azd, or set $name." }
}
if (-not (Get-Command az -ErrorAction SilentlyContinue)) {
    throw 'The Azure CLI (az) is needed to make secrets: https://aka.ms/azure-cli'
}
$vault = $env:AZURE_KEY_VAULT_NAME
# How often, and how many seconds apart: a role that was given a moment ago may need minutes to count.
$tries = 40
$pause = 15

function Test-Secret([string] $name) {
    for ($try = 1; $try -le $tries; $try++) {
        $found = az keyvault secret list --vault-name $vault --query "contains([].name, '$name')" --output tsv
        if ($LASTEXITCODE -eq 0) {
            switch ("$found".Trim().ToLowerInvariant()) {
                'true' { return $true }
                'false' { return $false }
                default { throw "The Azure CLI gave an unexpected answer about the secret $name." }
            }
        }
        if ($try -lt $tries) { Start-Sleep -Seconds $pause }
    }
    throw "The vault $vault cannot be read. You need the role Key Vault Secrets Officer on it."
}

function New-SecretOnce([string] $name) {
    if (Test-Secret $name) {
        Write-Host "The secret $name is there; it stays as it is."
        return $false
    }
    $bytes = [byte[]]::new(32)
    $random = [System.Security.Cryptography.RandomNumberGenerator]::Create()
    $random.GetBytes($bytes)
    $random.Dispose()
    # In a file and not as an argument, where other programs could read it. The folder is the user's own.
    $file = [System.IO.Path]::GetTempFileName()
    try {
        [System.IO.File]::WriteAllText($file, [Convert]::ToBase64String($bytes))
        az keyvault secret set --vault-name $vault --name $name --file $file --encoding utf-8 --output none
        if ($LASTEXITCODE -ne 0) { throw "The secret $name could not be made." }
    } finally {
        Remove-Item -Force $file
    }
    Write-Host "The secret $name was made."
    return $true
}

$madeKey = New-SecretOnce 'toolbox-seal-key'
$madeToken = New-SecretOnce 'mcp-auth-token'
if ($madeKey -or $madeToken) {
    # The app was made before its secrets: let the platform look at the references again.
    $app = az functionapp show --resource-group $env:AZURE_RESOURCE_GROUP --name $env:AZURE_FUNCTION_APP_NAME --query id --output tsv
    if ($LASTEXITCODE -ne 0) { throw 'The app cannot be read.' }
    az rest --method post --output none --url "$app/config/configreferences/appsettings/refresh?api-version=2022-03-01"
    if ($LASTEXITCODE -ne 0) { throw 'The references of the app could not be refreshed.' }
}
