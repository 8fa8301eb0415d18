"""What `dev.py connection …` takes on its command line. Read by any Python from 3.8 on."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn, Optional, Sequence, Union

#: Words as the app spells them; a command line may spell them in any case.
AUTH_TYPES = ("clientSecret", "clientCertificate", "managedIdentity", "default")
ENVIRONMENTS = ("Dev", "Test", "UAT", "Production")
NOT_HERE = (
    "A secret on a command line stays in the shell's history and shows in the list of processes. Put it into a "
    "setting (local.settings.json, an app setting, a Key Vault reference) and give that setting's name with "
    "--secret-setting, --certificate-setting or --certificate-password-setting. Replace the one that was typed."
)
#: Options that somebody may look for, and that must not be echoed by "unrecognized arguments".
_REFUSED = ("--secret", "--client-secret", "--password", "--certificate", "--certificate-password", "--key")


def add_parser(commands: Any) -> None:
    """Add `connection` to the commands of dev.py."""
    parser = commands.add_parser("connection", help="saved connections of Dataverse environments")
    actions = parser.add_subparsers(dest="action", required=True, metavar="add|list|test|remove")
    # No abbreviations: `--secret VALUE` must not be read as --secret-setting.
    add = actions.add_parser("add", help="save one; secrets stay in settings", allow_abbrev=False)
    add.add_argument("name", metavar="NAME", help="what callers name it by, in any case")
    add.add_argument("--url", required=True, help="like https://org.crm.dynamics.com")
    add.add_argument(
        "--auth", required=True, type=_one_of(AUTH_TYPES), metavar="TYPE", help=", ".join(AUTH_TYPES)
    )
    add.add_argument(
        "--environment",
        type=_one_of(ENVIRONMENTS),
        metavar="KIND",
        help=f"{', '.join(ENVIRONMENTS)} (default {ENVIRONMENTS[0]})",
    )
    add.add_argument("--tenant-id", metavar="ID", help="of the app or the identity")
    add.add_argument("--client-id", metavar="ID", help="of the app, or of a user-assigned identity")
    add.add_argument("--secret-setting", metavar="SETTING", help="the setting that holds the client secret")
    add.add_argument(
        "--certificate-setting",
        metavar="SETTING",
        help="the setting with the certificate, or with its file's path",
    )
    add.add_argument(
        "--certificate-password-setting", metavar="SETTING", help="the setting with the certificate's password"
    )
    add.add_argument("--authority", metavar="URL", help="another sign-in host than the public cloud's")
    add.add_argument(
        "--power-platform-url", metavar="URL", help="another Power Platform API than the public cloud's"
    )
    add.add_argument("--category", help="a word of your own, which tools see")
    add.add_argument(
        "--scope", action="append", metavar="SCOPE", help="for the Power Platform API; repeat for more"
    )
    add.add_argument(
        "--owner", action="append", metavar="OWNER", help="who may use it (default: default); repeat"
    )
    add.add_argument(
        "--tool", action="append", metavar="TOOL", help="a tool that may use it (default: all); repeat"
    )
    for option in _REFUSED:
        add.add_argument(option, action=_Refused, nargs="?", help=argparse.SUPPRESS)
    list_ = actions.add_parser(
        "list", help="those of the setting CONNECTIONS and of the table, and their faults"
    )
    test = actions.add_parser("test", help="sign in and ask the environment who that is")
    test.add_argument("connection", metavar="NAME", help="name or id")
    test.add_argument(
        "--timeout", type=_seconds, default=20.0, metavar="SECONDS", help="for all of it (default 20)"
    )
    remove = actions.add_parser("remove", help="remove one from the table, without asking")
    remove.add_argument("connection", metavar="NAME", help="name or id")
    for action in (add, list_, test, remove):
        action.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def _one_of(words: Sequence[str]) -> Any:
    def read(text: str) -> str:
        for word in words:
            if word.lower() == text.lower():
                return word
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(words)}")

    return read


def _seconds(text: str) -> float:
    seconds = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= seconds <= 600:
        raise argparse.ArgumentTypeError("must be whole seconds from 1 to 600")
    return float(seconds)


class _Refused(argparse.Action):
    """Ends the command without a word of what was typed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Union[str, Sequence[Any], None],
        option_string: Optional[str] = None,
    ) -> NoReturn:
        parser.error(f"{option_string}: no secret is taken here. {NOT_HERE}")
