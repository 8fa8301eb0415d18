"""`dev.py connection add|list|test|remove`: the saved connections of an app, wherever it runs.

They work on the table that `AzureWebJobsStorage` of local.settings.json or of the environment names. A secret
is never asked for, stored or shown: a connection has the names of the settings that hold one.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import NoReturn

from infra.local.dev.connection_inventory import Listed, Source, find, inventory, missing, to_json
from infra.local.dev.connection_new import new_connection
from infra.local.dev.connection_probe import Outcome, probe
from infra.local.dev.connection_storage import Place, place_of, read_settings, storage_errors, use_settings
from infra.local.dev.console import DevError, paint, say, warn
from infra.local.dev.operating import print_json, reported
from shared.apis.connections.book import not_one
from shared.apis.connections.model import Connection
from shared.apis.connections.reading import SETTING, Entry, setting_entries
from shared.apis.connections.reasons import Kind
from shared.errors import SettingsError


def run(options: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> int:
    """The exit code. Raises `DevError`, or with `--json` prints it as an object."""
    actions = {"add": _add, "list": _list, "test": _test, "remove": _remove}

    def work() -> int:
        settings = read_settings(environ)
        place = place_of(settings)
        with storage_errors(place):
            return actions[options.action](options, settings, place)

    return reported(options, work)


def _add(options: argparse.Namespace, settings: Mapping[str, str], place: Place) -> int:
    connection = new_connection(options, settings)
    saved = place.saved()
    for one in _everything(settings, place, strict=True):
        same_name = one.name and find([one], connection.name)
        if same_name or one.id == connection.id:
            where = f"the setting {SETTING}" if one.source is Source.SETTING else "the table"
            raise DevError(
                f"There is a connection with the name '{one.name}' already, in {where} (id {one.id}).",
                "Names are compared without case and without blanks around them. Remove that one first, or "
                "take another name.",
            )
    saved.add(connection)
    absent = missing(connection, settings)
    if options.json:
        shown = Listed(Source.TABLE, Entry("$", connection.name, connection))
        print_json({"ok": True, "storage": place.label, "connection": to_json(shown, settings)})
        return 0
    say(f"Saved '{connection.name}' (id {connection.id}) in the table of {place.label}.")
    for name in absent:
        warn(f"the setting {name} is not set here; set it where the app runs.")
    say(f"Running apps see it within a minute. Try it: python3 dev.py connection test {connection.id}")
    return 0


def _list(options: argparse.Namespace, settings: Mapping[str, str], place: Place) -> int:
    fault = ""
    try:
        _, configured = setting_entries(settings.get(SETTING, "").strip())
    except SettingsError as error:
        configured, fault = [], error.message
    listed = inventory(configured, place.saved().rows() if place.tables is not None else [])
    ok = not fault and all(one.healthy for one in listed)
    if options.json:
        shown = [to_json(one, settings) for one in listed]
        print_json({"ok": ok, "storage": place.label, "connections": shown, "faults": [fault] if fault else []})
        return 0 if ok else 1
    say(f"Table: {place.label}")
    if fault:
        say(paint(f"fault: {fault}", "red"))
    for one in listed:
        _show(one, settings)
    if any(one.source is Source.SETTING and one.entry.faults for one in listed):
        say(paint(f"The app does not start with a fault in {SETTING}.", "red"))
    if not listed and not fault:
        say("There are no connections. Add one: python3 dev.py connection add --help")
    return 0 if ok else 1


def _test(options: argparse.Namespace, settings: Mapping[str, str], place: Place) -> int:
    connection = _one(options.connection, _everything(settings, place, strict=True))
    use_settings(settings)  # certificates of one's own, proxies, identities: as the app has them
    outcome = probe(connection, settings, options.timeout)
    if options.json:
        print_json({**outcome.to_json(), "id": connection.id, "name": connection.name, "url": connection.url})
        return 0 if outcome.ok else 1
    say(f"{connection.name}  {connection.url}  {connection.auth.type}")
    _show_outcome(outcome)
    if outcome.reason is None:
        return 0
    if outcome.reason.kind is Kind.SETTING:
        raise DevError(
            f"{outcome.reason.text}.", "Settings are read from local.settings.json and the environment."
        )
    what = "asking the environment" if outcome.signed_in else "signing in"
    raise DevError(f"The connection '{connection.name}' does not work: {what} failed: {outcome.reason.text}.")


def _remove(options: argparse.Namespace, settings: Mapping[str, str], place: Place) -> int:
    saved = place.saved()
    everything = _everything(settings, place, strict=False)
    found = find([one for one in everything if one.row is not None], options.connection)
    if not found and find(everything, options.connection):
        raise DevError(
            f"'{options.connection}' stands in the setting {SETTING}, not in the table.", f"Change {SETTING}."
        )
    if len(found) != 1:
        _tell_ids(options.connection, found)
    (one,) = found
    assert one.row is not None
    if not saved.remove(one.row):
        raise DevError(
            f"The connection '{options.connection}' was changed or removed by somebody else just now."
        )
    if options.json:
        print_json({"ok": True, "storage": place.label, "removed": {"id": one.id, "name": one.name}})
        return 0
    say(f"Removed '{one.name or one.id}' from the table of {place.label}.")
    say("Running apps forget it within a minute.")
    return 0


def _everything(settings: Mapping[str, str], place: Place, *, strict: bool) -> list[Listed]:
    """Those of both sources. `strict`: raises `SettingsError` for a setting that the app refuses at start."""
    try:
        source, configured = setting_entries(settings.get(SETTING, "").strip())
    except SettingsError:
        if strict:
            raise
        configured = []
    else:
        faults = [fault for entry in configured for fault in entry.faults]
        if faults and strict:
            raise SettingsError(f"{source}: {'; '.join(faults)}")
    return inventory(configured, place.saved().rows() if place.tables is not None else [])


def _one(name_or_id: str, listed: list[Listed]) -> Connection:
    found = find(listed, name_or_id)
    if len(found) != 1:
        _tell_ids(name_or_id, found)
    connection = found[0].connection
    if connection is None:
        raise DevError(
            f"The connection '{name_or_id}' is illegal: {'; '.join(found[0].entry.faults)}",
            "Remove it and add it again.",
        )
    return connection


def _tell_ids(name_or_id: str, found: list[Listed]) -> NoReturn:
    """Raises the original's text for none or several, with the ids that would do."""
    ids = ", ".join(one.id for one in found)
    hint = f"Give an id instead: {ids}." if ids else "See `python3 dev.py connection list`."
    raise DevError(not_one(bool(found), name_or_id).message, hint)


def _show(one: Listed, settings: Mapping[str, str]) -> None:
    mark = paint("ok   ", "green") if one.healthy else paint("fault", "red")
    where = f"setting {SETTING}" if one.source is Source.SETTING else "table"
    connection = one.connection
    known_by = one.id if connection is None and one.row is None else f"id {one.id}"
    say(f"{mark}  {paint(one.name or '(no name)', 'bold')}  ({where}, {known_by})")
    if connection is not None:
        tools = "all tools" if connection.tools is None else f"tools {', '.join(connection.tools)}"
        say(f"       {connection.url}  {connection.environment}  {connection.auth.type}")
        say(f"       owners {', '.join(connection.owners)}; {tools}")
        absent = missing(connection, settings)
        for name in connection.settings:
            say(f"       setting {name}: {'not set here' if name in absent else 'set'}")
    if one.hidden:
        say(paint(f"       hidden: {SETTING} has one of the same id", "yellow"))
    if one.ambiguous_with:
        say(
            paint(
                f"       its name is ambiguous: the same callers could mean {', '.join(one.ambiguous_with)}",
                "yellow",
            )
        )
    for fault in one.entry.faults:
        say(paint(f"       {fault}", "red"))


def _show_outcome(outcome: Outcome) -> None:
    if outcome.signed_in:
        lasts = outcome.token_seconds or 0.0
        say(f"signed in      the token lasts {int(lasts // 60)} min {int(lasts % 60)} s")
    if outcome.ok:
        say(f"who            user {outcome.user_id}")
        say(f"organisation   {outcome.organization_id}")
        say(f"business unit  {outcome.business_unit_id}")
    say(f"took           {outcome.seconds:.1f} s")
