#!/bin/sh
# Makes the app's secrets in the vault, each one once. A secret that is there is left as it is: a new seal key would
# make the stored input of jobs unreadable, and a new token would lock everybody out. No secret is printed or passed
# as an argument, where other programs could read it.
set -eu

: "${AZURE_KEY_VAULT_NAME:?run this as the hook of azd, or set AZURE_KEY_VAULT_NAME}"
: "${AZURE_RESOURCE_GROUP:?run this as the hook of azd, or set AZURE_RESOURCE_GROUP}"
: "${AZURE_FUNCTION_APP_NAME:?run this as the hook of azd, or set AZURE_FUNCTION_APP_NAME}"
# How often, and how many seconds apart: a role that was given a moment ago may need minutes to count.
tries=${SECRETS_TRIES:-40}
pause=${SECRETS_PAUSE:-15}

command -v az >/dev/null || {
  echo "The Azure CLI (az) is needed to make secrets: https://aka.ms/azure-cli" >&2
  exit 1
}
command -v openssl >/dev/null || {
  echo "openssl is needed to make secrets." >&2
  exit 1
}

umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

# Prints yes or no; fails when the vault cannot be asked. A deleted secret counts as one that is not there.
is_there() {
  az keyvault secret list --vault-name "$AZURE_KEY_VAULT_NAME" \
    --query "contains([].name, '$1')" --output tsv 2>"$folder/error"
}

make_once() {
  left=$tries
  until found=$(is_there "$1"); do
    left=$((left - 1))
    if [ "$left" -le 0 ]; then
      cat "$folder/error" >&2
      echo "The vault $AZURE_KEY_VAULT_NAME cannot be read. You need the role Key Vault Secrets Officer on it." >&2
      exit 1
    fi
    sleep "$pause"
  done
  case $found in
    true | True)
      echo "The secret $1 is there; it stays as it is."
      return
      ;;
    false | False) ;;
    *)
      echo "The Azure CLI gave an unexpected answer about the secret $1." >&2
      exit 1
      ;;
  esac
  # 32 random bytes as base64, without the end of the line.
  openssl rand -base64 32 | tr -d '\r\n' >"$folder/value"
  az keyvault secret set --vault-name "$AZURE_KEY_VAULT_NAME" --name "$1" \
    --file "$folder/value" --encoding utf-8 --output none
  rm -f "$folder/value"
  made=yes
  echo "The secret $1 was made."
}

made=no
make_once toolbox-seal-key
make_once mcp-auth-token

if [ "$made" = yes ]; then
  # The app was made before its secrets: let the platform look at the references again.
  app=$(az functionapp show --resource-group "$AZURE_RESOURCE_GROUP" --name "$AZURE_FUNCTION_APP_NAME" \
    --query id --output tsv)
  az rest --method post --output none \
    --url "$app/config/configreferences/appsettings/refresh?api-version=2022-03-01"
fi
