"""The hook makes each secret once, keeps those that are there, and shows none: with a stand-in for `az`."""

from __future__ import annotations

import base64
import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.infra.support import AZURE

#: Keeps secrets as files of $VAULT; writes what it was asked, with all arguments, to $VAULT.log.
AZ = """#!/bin/sh
echo "$*" >>"$VAULT.log"
option() { while [ $# -gt 1 ]; do [ "$1" = "$want" ] && echo "$2"; shift; done; }
case "$1 $2 $3" in
  "keyvault secret list")
    waits=$(cat "$VAULT.forbidden" 2>/dev/null || echo 0)
    if [ "$waits" -gt 0 ]; then
      echo $((waits - 1)) >"$VAULT.forbidden"
      echo "ForbiddenByRbac" >&2
      exit 1
    fi
    want=--query; name=$(option "$@" | sed "s/.*, '\\(.*\\)').*/\\1/")
    [ -e "$VAULT/$name" ] && echo true || echo false
    ;;
  "keyvault secret set")
    want=--name; name=$(option "$@")
    want=--file; file=$(option "$@")
    stat -c %a "$(dirname "$file")" "$file" >>"$VAULT.modes"
    cp "$file" "$VAULT/$name"
    ;;
  "functionapp show --resource-group") echo "/subscriptions/1/app" ;;
  "rest --method post") ;;
  *) echo "unexpected: $*" >&2; exit 2 ;;
esac
"""


@dataclass(frozen=True)
class Vault:
    folder: Path
    environ: dict[str, str]

    def run(self, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", str(AZURE / "hooks" / "secrets.sh")],
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def secrets(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    def asked(self) -> str:
        return self.folder.with_suffix(".log").read_text()


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    if shutil.which("openssl") is None:
        pytest.skip("the hook needs openssl")
    programs, folder, temporary = tmp_path / "bin", tmp_path / "vault", tmp_path / "tmp"
    for made in (programs, folder, temporary):
        made.mkdir()
    az = programs / "az"
    az.write_text(AZ)
    az.chmod(az.stat().st_mode | stat.S_IXUSR)
    environ = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(temporary),
        "VAULT": str(folder),
        "AZURE_KEY_VAULT_NAME": "kv-test",
        "AZURE_RESOURCE_GROUP": "rg-test",
        "AZURE_FUNCTION_APP_NAME": "func-test",
        "SECRETS_TRIES": "3",
        "SECRETS_PAUSE": "0",
    }
    return Vault(folder, environ)


def test_secrets_are_made_once(vault: Vault) -> None:
    first = vault.run()
    assert first.returncode == 0, first.stderr
    made = vault.secrets()
    assert set(made) == {"toolbox-seal-key", "mcp-auth-token"}
    assert len(set(made.values())) == 2
    assert "config/configreferences/appsettings/refresh" in vault.asked()
    again = vault.run()
    assert again.returncode == 0, again.stderr
    assert vault.secrets() == made
    assert again.stdout.count("stays as it is") == 2
    assert vault.asked().count("rest --method post") == 1, "nothing new: the app need not look again"


def test_the_app_takes_what_the_hook_makes(vault: Vault) -> None:
    from shared import settings

    assert vault.run().returncode == 0
    made = {name: value.decode("ascii") for name, value in vault.secrets().items()}
    found = settings.load(
        {
            "AzureWebJobsStorage__accountName": "st1real",
            "TOOLBOX_SEAL_KEY": made["toolbox-seal-key"],
            "MCP_AUTH_TOKEN": made["mcp-auth-token"],
        }
    )
    assert found.seal_keys == (base64.b64decode(made["toolbox-seal-key"]),)
    assert found.owner_tokens == {"default": (made["mcp-auth-token"],)}


def test_no_secret_is_shown_or_left_behind(vault: Vault) -> None:
    done = vault.run()
    for value in vault.secrets().values():
        assert value.decode() not in done.stdout + done.stderr + vault.asked()
    assert list((vault.folder.parent / "tmp").iterdir()) == []
    assert set(vault.folder.with_suffix(".modes").read_text().split()) == {"700", "600"}


def test_one_that_is_there_is_kept_while_the_other_is_made(vault: Vault) -> None:
    (vault.folder / "toolbox-seal-key").write_bytes(b"the old one")
    assert vault.run().returncode == 0
    assert vault.secrets()["toolbox-seal-key"] == b"the old one"
    assert "mcp-auth-token" in vault.secrets()


def test_a_role_that_does_not_count_yet_is_waited_for(vault: Vault) -> None:
    vault.folder.with_suffix(".forbidden").write_text("2")
    done = vault.run()
    assert done.returncode == 0, done.stderr
    assert len(vault.secrets()) == 2


def test_a_vault_that_stays_closed_is_told_and_nothing_is_made(vault: Vault) -> None:
    vault.folder.with_suffix(".forbidden").write_text("99")
    done = vault.run()
    assert done.returncode == 1
    assert "ForbiddenByRbac" in done.stderr
    assert "Key Vault Secrets Officer" in done.stderr
    assert vault.secrets() == {}


@pytest.mark.parametrize("name", ["AZURE_KEY_VAULT_NAME", "AZURE_RESOURCE_GROUP", "AZURE_FUNCTION_APP_NAME"])
def test_without_the_outputs_it_says_which_one_is_missing(vault: Vault, name: str) -> None:
    done = vault.run(**{name: ""})
    assert done.returncode != 0
    assert name in done.stderr
    assert vault.secrets() == {}
