"""An entry runs the package that it names: no flag, variable or mount makes it run anything else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shared.upstream.config.environment import REFUSED, variable_fault
from shared.upstream.config.guard import argument_faults, is_launcher
from shared.upstream.config.mounts import mount_fault, volume_fault
from tests.unit.upstream.config.vectors import server, tool

APP = Path("/srv/site/app")


@pytest.mark.parametrize(
    "line",
    [
        "npx -y @modelcontextprotocol/server-everything stdio",
        "npx --yes pkg@latest --flag -c value",
        "npx -y -p @scope/pkg some-program --x",
        "npx --package=@scope/pkg -- some-program",
        "npx -y --registry https://npm.example.com pkg",
        "npx -y mcp-remote https://example.com/mcp --header X:y",
        "npx -y git+https://example.com/r.git",
        "npx -y file:./my-server",
        "uvx mcp-server-time --local-timezone=Europe/Berlin",
        "uvx --from git+https://h/r tool",
        "uvx --python 3.13 --with httpx pkg",
        "uvx -p cpython-3.12 pkg@1.2",
        "uvx --from ./dist/pkg.whl pkg",
        "uvx --index-url https://pypi.example.com/simple pkg[extra]",
        # Without --from, uvx runs nothing but the package's own program.
        "uvx tar",
        "docker run -i --rm mcp/fetch",
        "docker run -i --rm -e GITHUB_TOKEN -e A=b ghcr.io/github/github-mcp-server stdio --toolsets all",
        "docker run -it --rm --init --network host --name x -v data:/data img",
        "docker run -i --rm --mount type=bind,src=/data/projects,dst=/projects mcp/filesystem /projects",
        "docker container run -i --pull=always --memory 512m img bash -c anything",
        "docker run -i --cap-drop=ALL --security-opt no-new-privileges --read-only --tmpfs /tmp img",
        "docker run -i --rm -v ./data:/data:ro -eTOKEN img",
    ],
)
def test_normal_use_is_not_refused(line: str) -> None:
    command, *args = line.split()
    assert argument_faults(command, args, APP) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("npx", "needs a package"),
        ("npx -y", "needs a package"),
        ("npx -c id", "-c is not passed on"),
        ("npx --call=id", "--call is not passed on"),
        ("npx -y --call id pkg", "--call is not passed on"),
        ("npx --node-options=--require=/x.js pkg", "--node-options is not passed on"),
        ("npx --script-shell /bin/sh pkg", "--script-shell is not passed on"),
        ("npx --shell /bin/sh pkg", "--shell is not passed on"),
        ("npx --userconfig /x/.npmrc pkg", "--userconfig is not passed on"),
        ("npx --prefix /x pkg", "--prefix is not passed on"),
        ("npx -yc id", "-yc is not passed on"),
        ("npx -y bash -c id", "not a shell"),
        ("npx -y node@22 -e 1", "not a shell"),
        ("npx python3.13 -c 1", "not a shell"),
        ("npx -y -p is-odd sh -c id", "not a shell"),
        ("npx --package=is-odd -- env id", "not a shell"),
        ("npx -p is-odd -- /bin/echo", "not a path"),
        ("npx -p is-odd eval id", "not a shell"),
        ("npx -p is-odd exec id", "not a shell"),
        ("npx -p is-odd x&calc", "not a path"),
        ("npx -p is-odd %COMSPEC%", "not a path"),
        ("npx -p is-odd cargo.", "not a path"),
        ("npx /bin/sh -c id", "not a path"),
        ("npx ./sh -c id", "not a path"),
        ("npx x/../../../bin/sh", "not a path"),
        ("uvx", "needs a package"),
        ("uvx -q", "needs a package"),
        ("uvx python -c 1", "not a shell"),
        ("uvx --from cowsay bash -c id", "not a shell"),
        ("uvx --from cowsay /bin/sh", "not a path"),
        ("uvx --from bash bash", "not a shell"),
        ("uvx --from tar tar", "'tar' is a program of this machine too, found along PATH: leave --from out"),
        ("uvx --from tar==1.0 tar", "leave --from out"),
        ("uvx --python /tmp/evil pkg", "--python: must be a version"),
        ("uvx -p./evil pkg", "-p: must be a version"),
        ("uvx -qp /tmp/evil pkg", "-p: must be a version"),
        ("uvx --with-editable /x pkg", "--with-editable is not passed on"),
        ("uvx --env-file /x pkg", "--env-file is not passed on"),
        ("uvx --config-file /x pkg", "--config-file is not passed on"),
        ("uvx --directory /x pkg", "--directory is not passed on"),
        ("uvx --allow-insecure-host h pkg", "--allow-insecure-host is not passed on"),
        ("docker", "only be used as 'docker run'"),
        ("docker exec c sh", "only be used as 'docker run'"),
        ("docker -H tcp://h run img", "only be used as 'docker run'"),
        ("docker --config /x run img", "only be used as 'docker run'"),
        ("docker run -i", "needs an image"),
        ("docker run --privileged img", "--privileged is not passed on"),
        ("docker run --pid=host img", "--pid is not passed on"),
        ("docker run --cap-add ALL img", "--cap-add is not passed on"),
        ("docker run --device /dev/sda img", "--device is not passed on"),
        ("docker run --security-opt seccomp=unconfined img", "--security-opt: may only be"),
        ("docker run --volumes-from x img", "--volumes-from is not passed on"),
        ("docker run --network=container:x img", "--network: must not join"),
        ("docker run -d img", "-d is not passed on"),
        ("docker run -v /:/host img", "must not be mounted"),
        ("docker run -itv /:/host img", "must not be mounted"),
        ("docker run -v=/etc:/x:ro img", "must not be mounted"),
        ("docker run -v/var/run/docker.sock:/s img", "socket"),
        ("docker run --mount type=bind,source=/,target=/host img", "must not be mounted"),
        ("docker run --mount=type=volume,dst=/x,volume-opt=device=/ img", "only type, source"),
        ("docker run -i -e", "-e needs a value"),
        ("docker run --rm=yes img", "--rm takes no value"),
    ],
)
def test_what_would_run_something_else_is_refused(line: str, said: str) -> None:
    command, *args = line.split()
    (fault,) = argument_faults(command, args, APP)
    assert said in fault


def test_an_operators_own_program_takes_any_arguments() -> None:
    assert argument_faults("deno", ["run", "-A", "x.ts"], APP) == []
    entry = {"command": "deno", "args": ["run", "x.ts"]}
    assert server(entry, commands=("deno",)).only.command == "deno"
    (fault,) = server(entry).faults
    assert fault.message == "Invalid command 'deno'. Supported commands: npx, uvx, docker"


def test_a_tool_entry_never_takes_more_than_the_three() -> None:
    entry = {"name": "t", "type": "mcp", "server": "s", "command": "deno", "args": ["x"]}
    (fault,) = tool(entry, commands=("deno",)).faults
    assert fault.message == "Invalid command 'deno'. Supported commands: npx, uvx, docker"


def test_a_path_to_an_allowed_program_is_not_that_program() -> None:
    for command in ("/usr/bin/npx", "./npx", "C:\\npx.cmd", "NPX", "npx.cmd"):
        (fault,) = server({"command": command, "args": ["-y", "pkg"]}).faults
        assert fault.field == "command"


def test_variables_cannot_smuggle_a_flag() -> None:
    """Flags are judged after their variables are resolved."""
    entry = {"command": "npx", "args": ["-y", "${X}", "id"]}
    assert server(entry, environ={"X": "pkg"}).only.args == ("-y", "pkg", "id")
    assert server(entry, environ={"X": "--call"}).fields() == {"args"}


def test_a_variable_cannot_be_the_program() -> None:
    assert server({"command": "${X}", "args": ["a"]}, environ={"X": "npx"}).fields() == {"command"}


def test_a_value_of_a_flag_is_not_repeated() -> None:
    outcome = server({"command": "uvx", "args": ["--python", "hunter2/x", "pkg", "--key", "hunter2"]})
    assert outcome.servers == {}
    assert "hunter2" not in outcome.said()


def program(folder: Path, name: str, leads_to: Path | None = None) -> None:
    """A program of the machine; `leads_to`: where the link leads that a package manager made."""
    folder.mkdir(parents=True, exist_ok=True)
    if leads_to is None:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
        return
    program(leads_to.parent, leads_to.name)
    (folder / name).symlink_to(leads_to)


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of PATH that is none of the system's, as Cargo and Homebrew have one."""
    folder = tmp_path / "home" / ".cargo" / "bin"
    folder.mkdir(parents=True)
    monkeypatch.setenv("PATH", os.pathsep.join(("/usr/bin", str(folder), "tools-of-the-app")))
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "npx -y -p is-odd frobnicate apply",
        "npx --package=is-odd frobnicate",
        "npx -p is-odd -p frobnicate -- frobnicate apply",
        "uvx --from cowsay frobnicate apply",
        "uvx --from=frobnicate==1 frobnicate apply",
        "uvx --from git+https://h/frobnicate frobnicate apply",
    ],
)
def test_a_program_anywhere_along_path_is_not_the_package_s(on_path: Path, line: str) -> None:
    command, *args = line.split()
    assert argument_faults(command, args, APP) == []
    program(on_path, "frobnicate")
    (fault,) = argument_faults(command, args, APP)
    assert "'frobnicate' is a program of this machine too" in fault
    # An entry that only names the package is not concerned.
    assert argument_faults(command, ["frobnicate"], APP) == []


def test_a_folder_of_path_may_be_relative_to_the_app(on_path: Path, tmp_path: Path) -> None:
    program(tmp_path / "tools-of-the-app", "frobnicate")
    args = ["--from", "cowsay", "frobnicate"]
    assert argument_faults("uvx", args, APP) == []
    assert argument_faults("uvx", args, tmp_path) != []


def test_what_package_managers_have_put_on_path_is_the_package_s(on_path: Path, tmp_path: Path) -> None:
    program(on_path, "some-server", tmp_path / "lib" / "node_modules" / "some-server" / "cli.js")
    program(on_path, "time-server", tmp_path / "share" / "uv" / "tools" / "time-server" / "bin" / "time-server")
    program(on_path, "sh-server", tmp_path / "pipx" / "venvs" / "other" / "bin" / "sh-server")
    assert argument_faults("npx", ["-p", "some-server", "some-server"], APP) == []
    assert argument_faults("npx", ["-p", "@scope/pkg", "some-server"], APP) == []
    assert argument_faults("uvx", ["--from", "time-server", "time-server"], APP) == []
    assert argument_faults("uvx", ["--from", "cowsay", "time-server"], APP) != []
    assert argument_faults("uvx", ["--from", "sh-server", "sh-server"], APP) != []


def test_npx_takes_what_stands_beside_node_for_a_global_package(
    on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without -p, npm's folder of global programs comes before the registry, and nothing else of PATH does."""
    program(on_path, "frobnicate")
    assert argument_faults("npx", ["-y", "frobnicate"], APP) == []
    monkeypatch.setenv("PATH", str(on_path))
    program(on_path, "node")
    assert argument_faults("npx", ["-y", "frobnicate"], APP) != []
    program(on_path, "some-server", tmp_path / "lib" / "node_modules" / "some-server" / "cli.js")
    assert argument_faults("npx", ["-y", "some-server"], APP) == []


def test_programs_of_the_system_are_not_a_package_s(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shells fall back on the system's folders, so they count without PATH as well."""
    monkeypatch.setenv("PATH", str(on_path))
    assert argument_faults("npx", ["-p", "is-odd", "ls"], APP) != []
    assert argument_faults("npx", ["ls"], APP) != []


def test_launchers_are_launchers_everywhere() -> None:
    assert is_launcher("PowerShell.exe")
    assert is_launcher("python3.13")
    assert not is_launcher("mcp-server-time")


# Variables


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "x"), ("ENV", "production"), ("PYTHONUNBUFFERED", "1"), ("PYTHONUTF8", "1"),
        ("NODE_ENV", "x"),
        ("HTTPS_PROXY", "http://p:1"), ("NODE_EXTRA_CA_CERTS", "/x.pem"), ("SSL_CERT_FILE", "/x.pem"),
        ("npm_config_registry", "https://npm.example.com"), ("NPM_CONFIG_CACHE", "/tmp/npm"),
        ("npm_config_//npm.example.com/:_authToken", "x"), ("UV_INDEX_URL", "https://p"),
        ("UV_CACHE_DIR", "/tmp/uv"),
        ("UV_INDEX_CORP_PASSWORD", "x"), ("UV_PYTHON", "3.13"), ("UV_OFFLINE", "1"), ("GITHUB_TOKEN", "x"),
        ("GIT_AUTHOR_NAME", "x"), ("DOCKER_HOST", "unix:///run/user/1000/docker.sock"),
        ("XDG_CACHE_HOME", "/tmp"),
        ("MCP_CONFIG", "{}"), ("LDAP_URL", "ldaps://x"), ("EMPTY", ""),
    ],
)  # fmt: skip
def test_variables_of_normal_use_are_passed_on(name: str, value: str) -> None:
    assert variable_fault(name, value) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "x") for name in sorted(REFUSED)),
        ("Path", "/x"), ("node_options", "--require=/x"), ("LD_PRELOAD", "/x.so"), ("LD_LIBRARY_PATH", "/x"),
        ("DYLD_INSERT_LIBRARIES", "/x"), ("BASH_FUNC_npx%%", "() { id; }"), ("npm_config_script_shell", "/x"),
        ("NPM_CONFIG_SCRIPT-SHELL", "/x"), ("npm_config_node_options", "/x"), ("npm_config_call", "id"),
        ("npm_config_userconfig", "/x"), ("npm_config_package", "x"), ("npm_config_prefix", "/x"),
        ("UV_PYTHON", "/tmp/evil"), ("UV_CONFIG_FILE", "/x"), ("UV_PYTHON_INSTALL_MIRROR", "x"),
        ("UV_ENV_FILE", "/x"),
        ("UV_INSECURE_HOST", "h"), ("DOCKER_HOST", "ssh://-oProxyCommand=id"), ("DOCKER_HOST", "tcp://h:1"),
        ("DOCKER_CONFIG", "/x"), ("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_GLOBAL", "/x"),
        ("CORECLR_PROFILER", "x"),
        ("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0"), (" A", "x"),
    ],
)  # fmt: skip
def test_variables_that_would_run_something_else_are_refused(name: str, value: str) -> None:
    fault = variable_fault(name, value)
    assert fault is not None
    assert value not in fault or value in ("", "x", "h", "1")


def test_refused_variables_are_refused_wherever_they_stand(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("NODE_OPTIONS=--require=/x.js\n")
    entry = {"command": "npx", "args": ["pkg"], "env": {"LD_PRELOAD": "${X}"}, "env_file": ".env"}
    outcome = server(entry, environ={"X": "/hunter2.so"}, folder=tmp_path)
    assert outcome.fields() == {"env.LD_PRELOAD", "env_file.NODE_OPTIONS"}
    assert "hunter2" not in outcome.said()


# Mounts


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with an app in it; beside them, data."""
    home = tmp_path / "home" / "me"
    for folder in (home / "app" / "data", home / "work", home / ".ssh", tmp_path / "data"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return tmp_path


@pytest.mark.parametrize(
    ("source", "options", "legal"),
    [
        ("{}/data", "", True),
        ("{}/data", ":ro", True),
        ("{}/data/../data/x", "", True),
        ("{}/home/me/work", "", True),
        ("../work", "", True),
        ("{}/home/me", "", False),
        ("{}/home/me", ":ro", False),
        ("{}/home", "", False),
        ("{}", "", False),
        ("{}/home/me/.ssh", ":ro", False),
        ("{}/home/me/.bashrc", "", False),
        ("{}/home/me/app", "", False),
        ("{}/home/me/app", ":ro", True),
        ("./data", "", False),
        ("./data", ":ro,z", True),
        ("/", ":ro", False),
        ("//", ":ro", False),
        ("/etc/passwd", ":ro", False),
        ("{}/data/../../../../../../../etc", "", False),
        ("/run/user/1000/docker.sock", "", False),
        ("/proc", "", False),
        ("~/work", "", False),
    ],
)
def test_what_docker_may_mount(machine: Path, source: str, options: str, legal: bool) -> None:
    app = machine / "home" / "me" / "app"
    path = source.format(machine)
    assert (volume_fault(f"{path}:/x{options}", app) is None) is legal
    readonly = ",readonly" if "ro" in options else ""
    assert (mount_fault(f"type=bind,src={path},dst=/x{readonly}", app) is None) is legal


def test_a_link_is_followed_before_it_is_judged(machine: Path) -> None:
    (machine / "data" / "link").symlink_to("/etc")
    (machine / "data" / "self").symlink_to(machine / "home" / "me" / "app")
    app = machine / "home" / "me" / "app"
    assert volume_fault(f"{machine}/data/link:/x", app) == "a folder of the system must not be mounted"
    assert volume_fault(f"{machine}/data/self/y:/x", app) is not None


def test_the_socket_of_an_engine_anywhere(machine: Path) -> None:
    fault = volume_fault(f"{machine}/data/docker.sock:/x", machine / "app")
    assert fault is not None
    assert "socket" in fault


@pytest.mark.parametrize("value", ["named:/x", "/only/inside", "named:/x:ro"])
def test_volumes_of_the_engine_itself(value: str) -> None:
    assert volume_fault(value, APP) is None


@pytest.mark.parametrize(
    "value",
    ["type=volume,source=/etc,target=/x", "type=npipe,source=x,target=/x", "type=bind,target=/x",
     "type=bind,src=a,source=/",
     'type=bind,"source=/a",dst=/x', "type=bind,src=/data,src=/,dst=/x", "bind-propagation=shared"],
)  # fmt: skip
def test_mounts_that_cannot_be_judged_are_refused(value: str) -> None:
    assert mount_fault(value, APP) is not None


def test_a_mount_without_a_source_is_a_new_volume() -> None:
    assert mount_fault("target=/x", APP) is None
    assert mount_fault("type=tmpfs,target=/x,tmpfs-size=1", APP) is None


def test_home_is_that_of_the_process() -> None:
    # The test above sets it; without it the real one counts.
    assert volume_fault(f"{os.path.expanduser('~')}:/x:ro", APP) is not None  # noqa: PTH111
