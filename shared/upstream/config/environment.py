"""Which environment variables an entry may set for its server.

A variable that makes the started program, or one that it starts, run other code than its package's is refused:
a library or module that is loaded first, options that hold code, another place for programs, a configuration
file that names any of these. npm and uv take every option by a variable too, so for them only those are let
through that their flags allow (`flags`). Names are compared without case: npm and Windows do so too.

Not refused, as they cannot: tokens and settings of servers, proxies, certificates, registries and indexes with
their passwords, caches (a read-only home needs UV_CACHE_DIR and npm_config_cache), PYTHONUNBUFFERED, PYTHONUTF8
and the like.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from shared.upstream.config.flags import UVX

_SEARCH: Final = "decides where programs and modules are looked for"
_LOADS: Final = "makes programs load other code"
_FILES: Final = "names configuration that can make programs run other code"
_STARTS: Final = "names a program that others start"

#: Why -> the names, in upper case.
_REFUSED_NAMES: Final[Mapping[str, str]] = {
    _SEARCH: """
        PATH PATHEXT NODE_PATH PYTHONPATH PYTHONHOME PYTHONUSERBASE PYTHONPLATLIBDIR PYTHONPYCACHEPREFIX
        PERL5LIB RUBYLIB GEM_PATH GEM_HOME CLASSPATH GCONV_PATH
    """,
    _LOADS: """
        NODE_OPTIONS NODE_REPL_EXTERNAL_MODULE BUN_OPTIONS PYTHONSTARTUP PYTHONINSPECT PYTHONBREAKPOINT
        PYTHONWARNINGS PERL5OPT PERL5DB RUBYOPT JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS
        DOTNET_STARTUP_HOOKS BASH_ENV SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND OPENSSL_CONF OPENSSL_MODULES
        OPENSSL_ENGINES GLIBC_TUNABLES
    """,
    _FILES: """
        HOME USERPROFILE APPDATA LOCALAPPDATA XDG_CONFIG_HOME XDG_CONFIG_DIRS GIT_TEMPLATE_DIR
    """,
    _STARTS: """
        SHELL COMSPEC PYTHONEXECUTABLE __PYVENV_LAUNCHER__ PYTHON NODE CC CXX RUSTC RUSTC_WRAPPER NPM_EXECPATH
        NPM_NODE_EXECPATH GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS SSH_ASKPASS GIT_EXEC_PATH GIT_EXTERNAL_DIFF
        GIT_PROXY_COMMAND GIT_EDITOR GIT_PAGER GIT_SEQUENCE_EDITOR
    """,
}
REFUSED: Final[Mapping[str, str]] = {
    name: reason for reason, names in _REFUSED_NAMES.items() for name in names.split()
}
_REFUSED_PREFIXES: Final = (
    ("LD_", _LOADS),
    ("DYLD_", _LOADS),
    ("BASH_FUNC_", _LOADS),
    ("CORECLR_", _LOADS),
    ("COR_", _LOADS),
    ("GIT_CONFIG", _FILES),
)
_NPM: Final = "NPM_CONFIG_"
#: npm's options without - and _; `//host/:_authToken` and the like are let through as well.
_NPM_LEGAL: Final = frozenset(
    [
        "audit",
        "ca",
        "cache",
        "cafile",
        "fetchretries",
        "fetchtimeout",
        "fund",
        "httpsproxy",
        "ignorescripts",
        "loglevel",
        "noproxy",
        "offline",
        "preferoffline",
        "preferonline",
        "progress",
        "proxy",
        "registry",
        "silent",
        "updatenotifier",
        "yes",
    ]
)
#: uv's variables that are no flag of the same name. `flags.UVX` has those.
_UV_LEGAL: Final = frozenset(
    [
        "UV_CACHE_DIR",
        "UV_TOOL_DIR",
        "UV_INDEX",
        "UV_EXTRA_INDEX_URL",
        "UV_HTTP_TIMEOUT",
        "UV_REQUEST_TIMEOUT",
        "UV_HTTP_RETRIES",
        "UV_CONCURRENT_DOWNLOADS",
        "UV_CONCURRENT_BUILDS",
        "UV_CONCURRENT_INSTALLS",
        "UV_PYTHON_DOWNLOADS",
        "UV_NO_WRAPPER",
        "UV_GITHUB_TOKEN",
    ]
)
_UV_INDEX_LOGIN = re.compile(r"UV_INDEX_[A-Z0-9_]+_(?:USERNAME|PASSWORD)")
_DOCKER_LEGAL: Final = frozenset(
    {"DOCKER_DEFAULT_PLATFORM", "DOCKER_CONTENT_TRUST", "DOCKER_API_VERSION", "DOCKER_CLI_HINTS"}
)
_LOCAL_ENGINE = re.compile(r"(?:unix:///|npipe:////\./pipe/)[\w./-]+")


def variable_fault(name: str, value: str) -> str | None:
    """Why an entry may not set the variable; None if it may. The message repeats no value."""
    if not name or "=" in name or "\0" in name or name != name.strip():
        return "a variable needs a name without blanks at its ends, '=' and NUL"
    if "\0" in value:
        return "must not hold a NUL character"
    upper = name.upper()
    if (reason := REFUSED.get(upper)) is not None:
        return f"is not passed on: it {reason}"
    for prefix, reason in _REFUSED_PREFIXES:
        if upper.startswith(prefix):
            return f"is not passed on: it {reason}"
    if upper.startswith(_NPM) and not _npm_is_legal(upper.removeprefix(_NPM)):
        return f"is not passed on: this option of npm {_LOADS}, or is not known to be harmless"
    if upper.startswith("UV_"):
        return _uv_fault(upper, value)
    if upper.startswith("DOCKER_"):
        return _docker_fault(upper, value)
    return None


def _npm_is_legal(option: str) -> bool:
    return option.startswith("//") or option.replace("-", "").replace("_", "").lower() in _NPM_LEGAL


def _uv_fault(name: str, value: str) -> str | None:
    flag = "--" + name.removeprefix("UV_").lower().replace("_", "-")
    check = UVX.values.get(flag)
    if check is not None:
        return check(value, Path())
    if flag in UVX.values or flag in UVX.switches or name in _UV_LEGAL or _UV_INDEX_LOGIN.fullmatch(name):
        return None
    return f"is not passed on: this option of uv {_LOADS}, or is not known to be harmless"


def _docker_fault(name: str, value: str) -> str | None:
    if name in _DOCKER_LEGAL or (name == "DOCKER_HOST" and _LOCAL_ENGINE.fullmatch(value)):
        return None
    if name == "DOCKER_HOST":
        return "may only be the socket of an engine on this machine, like unix:///run/user/1000/docker.sock"
    return f"is not passed on: it {_FILES}, or is not known to be harmless"
