# Makes dist/app.zip, which is what azd deploys. See docs/deploy.md, "The package". On Windows dev.py runs in WSL 2.
$ErrorActionPreference = 'Stop'
Set-Location (Join-Path $PSScriptRoot '../../..')
if (-not (Get-Command wsl -ErrorAction SilentlyContinue)) {
    throw 'dist/app.zip cannot be made: "python3 dev.py package" needs WSL 2, and there is no wsl command.'
}
wsl --exec python3 dev.py package
if ($LASTEXITCODE -ne 0) {
    throw 'dist/app.zip was not made: see above what "python3 dev.py package" said.'
}
