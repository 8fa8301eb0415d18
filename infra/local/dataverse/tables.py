"""The tables an environment starts with, few columns each; and records to try tools with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.catalogue import OptionSet
from infra.local.dataverse.schema import Column, Kind, ManyToMany, OneToMany, Ref, Table, stable_id

if TYPE_CHECKING:
    from infra.local.dataverse.catalogue import Catalogue
    from infra.local.dataverse.environment import Environment

_STATES: Final = {0: "Active", 1: "Inactive"}
_REASONS: Final = {1: "Active", 2: "Inactive"}


def _system_columns() -> list[Column]:
    return [
        Column("statecode", Kind.STATE, label="Status", options=dict(_STATES)),
        Column("statuscode", Kind.STATUS, label="Status Reason", options=dict(_REASONS)),
        Column("createdon", Kind.DATETIME, "CreatedOn", "Created On"),
        Column("modifiedon", Kind.DATETIME, "ModifiedOn", "Modified On", read_only=True),
        Column("versionnumber", Kind.BIGINT, "VersionNumber", read_only=True),
        Column("ownerid", Kind.OWNER, "OwnerId", "Owner", targets=("systemuser",)),
    ]


def table(
    name: str, set_name: str, primary_name: str, *columns: Column, plain: bool = False, **rest: Any
) -> Table:
    """A table with its id, its name column and, unless `plain`, state, times and owner."""
    own = [
        Column(f"{name}id", Kind.ID),
        Column(primary_name, Kind.STRING, max_length=160),
        *columns,
        *([] if plain else _system_columns()),
    ]
    return Table(name, set_name, f"{name}id", primary_name, columns={one.name: one for one in own}, **rest)


def _lookup(name: str, *targets: str, kind: Kind = Kind.LOOKUP) -> Column:
    return Column(name, kind, targets=targets)


def _text(name: str, label: str, length: int = 100) -> Column:
    return Column(name, Kind.STRING, label=label, max_length=length)


def add_tables(catalogue: Catalogue) -> None:
    """Put the sample tables, relationships and option sets in."""
    catalogue.option_sets["sample_color"] = OptionSet(
        "sample_color", "Color", {1: "Red", 2: "Green", 3: "Blue"}
    )
    for one in (_account(), _contact(), _user(), _unit(), _project(), *_administration()):
        catalogue.add(one)
    catalogue.relate(
        OneToMany("account_primary_contact", "contact", "account", "primarycontactid", "primarycontactid",
                  "account_primary_contact"),
        OneToMany("account_parent_account", "account", "account", "parentaccountid", "parentaccountid",
                  "account_parent_account"),
        OneToMany("contact_customer_accounts", "account", "contact", "parentcustomerid",
                  "parentcustomerid_account", "contact_customer_accounts"),
        OneToMany("contact_customer_contacts", "contact", "contact", "parentcustomerid",
                  "parentcustomerid_contact", "contact_customer_contacts"),
        OneToMany("business_unit_system_users", "businessunit", "systemuser", "businessunitid",
                  "businessunitid", "business_unit_system_users"),
        OneToMany("sample_account_project", "account", "sample_project", "sample_accountid", "sample_AccountId",
                  "sample_account_project"),
        *(OneToMany(f"user_{name}", "systemuser", name, "ownerid", "ownerid", f"user_{name}")
          for name in ("account", "contact", "sample_project")),
        ManyToMany("sample_project_contact", "sample_project", "contact", "sample_project_contact",
                   "sample_project_contact", "sample_project_contact"),
    )  # fmt: skip


def _account() -> Table:
    return table(
        "account", "accounts", "name",
        _text("accountnumber", "Account Number", 20), _text("telephone1", "Main Phone", 50),
        _text("emailaddress1", "Email"), _text("address1_city", "Address 1: City", 80),
        Column("description", Kind.MEMO, label="Description", max_length=2000),
        Column("revenue", Kind.MONEY, label="Annual Revenue"),
        Column("numberofemployees", Kind.INTEGER, label="Number of Employees"),
        Column("creditonhold", Kind.BOOLEAN, label="Credit Hold", options={0: "No", 1: "Yes"}),
        Column("accountcategorycode", Kind.PICKLIST, label="Category",
               options={1: "Preferred Customer", 2: "Standard"}),
        Column("address1_latitude", Kind.DOUBLE, label="Address 1: Latitude"),
        _lookup("primarycontactid", "contact"), _lookup("parentaccountid", "account"),
        schema_name="Account", type_code=1, keys={"accountnumber_key": ("accountnumber",)},
    )  # fmt: skip


def _contact() -> Table:
    return table(
        "contact", "contacts", "fullname",
        _text("firstname", "First Name", 50), _text("lastname", "Last Name", 50),
        _text("emailaddress1", "Email"), _text("jobtitle", "Job Title"),
        Column("birthdate", Kind.DATETIME, label="Birthday", date_only=True),
        Column("donotemail", Kind.BOOLEAN, label="Do not allow Emails",
               options={0: "Allow", 1: "Do Not Allow"}),
        _lookup("parentcustomerid", "account", "contact", kind=Kind.CUSTOMER),
        schema_name="Contact", type_code=2,
    )  # fmt: skip


def _user() -> Table:
    return table(
        "systemuser", "systemusers", "fullname",
        _text("firstname", "First Name"), _text("lastname", "Last Name"),
        _text("internalemailaddress", "Primary Email"), _text("domainname", "User Name"),
        Column("applicationid", Kind.ID, label="Application ID"),
        Column("isdisabled", Kind.BOOLEAN, label="Status"), _lookup("businessunitid", "businessunit"),
        plain=True, schema_name="SystemUser", type_code=8,
    )  # fmt: skip


def _unit() -> Table:
    return table(
        "businessunit", "businessunits", "name", Column("organizationid", Kind.ID), plain=True,
        schema_name="BusinessUnit", type_code=10,
    )  # fmt: skip


def _project() -> Table:
    """A custom table: its entity set is no plural of its name, and its key has two columns."""
    return table(
        "sample_project", "sample_portfolio", "sample_name",
        _text("sample_code", "Code", 20), Column("sample_year", Kind.INTEGER, label="Year"),
        Column("sample_budget", Kind.DECIMAL, label="Budget"),
        Column("sample_start", Kind.DATETIME, label="Start"),
        Column("sample_color", Kind.PICKLIST, label="Color", option_set="sample_color"),
        _lookup("sample_accountid", "account"),
        schema_name="sample_Project", label="Project", custom=True, type_code=10_001,
        keys={"sample_code_year": ("sample_code", "sample_year")},
    )  # fmt: skip


def _administration() -> list[Table]:
    return [
        table("solution", "solutions", "friendlyname", _text("uniquename", "Name", 65),
              _text("version", "Version"),
              Column("ismanaged", Kind.BOOLEAN), Column("isvisible", Kind.BOOLEAN),
              Column("installedon", Kind.DATETIME), plain=True, schema_name="Solution", type_code=7100),
        table("importjob", "importjobs", "solutionname", Column("progress", Kind.DOUBLE),
              Column("data", Kind.MEMO), Column("startedon", Kind.DATETIME),
              Column("completedon", Kind.DATETIME),
              plain=True, schema_name="ImportJob", type_code=9107),
        table("asyncoperation", "asyncoperations", "name", Column("message", Kind.MEMO),
              Column("statecode", Kind.STATE,
                     options={0: "Ready", 1: "Suspended", 2: "Locked", 3: "Completed"}),
              Column("statuscode", Kind.STATUS, options={0: "Waiting", 20: "In Progress", 30: "Succeeded",
                                                         31: "Failed"}),
              plain=True, schema_name="AsyncOperation", type_code=4700),
    ]  # fmt: skip


def add_records(environment: Environment, accounts: int = 12) -> None:
    """Accounts with a contact each, projects, and people in projects; the same ids in every run."""
    for number in range(1, accounts + 1):
        account_id = stable_id("account", environment.name, str(number))
        contact_id = stable_id("contact", environment.name, str(number))
        environment.insert(
            "contact",
            {"firstname": "Contact", "lastname": f"{number:05}", "emailaddress1": f"c{number}@example.invalid"},
            contact_id,
        )
        fields: dict[str, Any] = {
            "name": f"Account {number:05}", "accountnumber": f"A-{number:05}", "revenue": 1000.0 * number,
            "numberofemployees": number, "creditonhold": number % 3 == 0, "accountcategorycode": 1 + number % 2,
            "address1_city": ("Oslo", "Bergen", "Porto")[number % 3],
            "primarycontactid": Ref("contact", contact_id),
        }  # fmt: skip
        environment.insert("account", fields, account_id)
        if number <= 3:
            project = {"sample_name": f"Project {number}", "sample_code": "P", "sample_year": 2020 + number,
                       "sample_color": number, "sample_accountid": Ref("account", account_id)}  # fmt: skip
            project_id = environment.insert(
                "sample_project", project, stable_id("project", environment.name, str(number))
            )
            many = environment.catalogue.many_to_many["sample_project_contact"]
            environment.store.link(many, project_id, contact_id)
