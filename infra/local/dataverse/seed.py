"""Records to look at: companies with people, beside the numbered ones that tests count.

The same in every run, down to the ids. Names are put together from lists of words. Addresses of mail end in
`.example` (RFC 2606), and telephone numbers are those that are kept for fiction (555-01xx).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.schema import Ref, stable_id

if TYPE_CHECKING:
    from infra.local.dataverse.environment import Environment

_FIRST: Final = (
    "Alpine", "Amber", "Birch", "Blue Harbor", "Cedar", "Clearwater", "Copper", "Coral", "Elm Street",
    "Evergreen", "Falcon", "Granite", "Green Valley", "Harvest", "Highland", "Juniper", "Lakeside", "Maple",
    "Meadow", "North Star", "Oakwood", "Orchard", "Pine Ridge", "Redwood", "Riverside", "Silver Lake", "Summit",
    "Sunrise", "Tidewater", "Willow",
)  # fmt: skip
_TRADES: Final = (
    "Bicycles", "Builders", "Coffee", "Consulting", "Dental Care", "Electronics", "Foods", "Freight",
    "Furniture", "Garden Supply", "Instruments", "Logistics", "Marine", "Medical", "Optics", "Paper",
    "Plastics", "Software", "Solar", "Textiles", "Toys", "Travel",
)  # fmt: skip
_FORMS: Final = ("Inc.", "Ltd.", "GmbH", "AS", "Lda.", "B.V.")
_CITIES: Final = (  # with the latitude
    ("Oslo", 59.91), ("Bergen", 60.39), ("Porto", 41.15), ("Lisboa", 38.72), ("München", 48.14),
    ("Köln", 50.94), ("Łódź", 51.76), ("Utrecht", 52.09), ("Galway", 53.27), ("Leeds", 53.80),
    ("Seattle", 47.61), ("Montréal", 45.50),
)  # fmt: skip
_GIVEN: Final = (
    "Adele", "Bruno", "Chiara", "Dmitri", "Eline", "Farid", "Grace", "Henrik", "Inês", "Jonas", "Kavya", "Lars",
    "Mei", "Noor", "Olga", "Pedro", "Ramona", "Søren", "Tomás", "Ulla", "Vikram", "Wanda", "Yusuf", "Zoë",
)  # fmt: skip
_FAMILY: Final = (
    "Almeida", "Bauer", "Costa", "Dahl", "Eriksen", "Fischer", "Garcia", "Hansen", "Iversen", "Jansen",
    "Kowalski", "Lund", "Moreau", "Nowak", "O'Brien", "Patel", "Quinn", "Rossi", "Silva", "Tanaka", "Usman",
    "Vogel", "Weber", "Yamamoto",
)  # fmt: skip
_JOBS: Final = (
    "Purchasing Manager", "Owner", "Head of Sales", "Office Manager", "Accountant", "Operations Lead",
    "Buyer", "Chief Executive", "Service Technician", "Marketing Manager",
)  # fmt: skip
#: A company with more employees than this has a part that is a company too.
_LARGE: Final = 2_000


def add_companies(environment: Environment, companies: int) -> None:
    """Adds accounts with one to four contacts each; a few belong to another one. Raises ApiError."""
    chance = random.Random(20_26)  # noqa: S311 - no secret: the same records in every run
    parent: Ref | None = None
    for number in range(1, companies + 1):
        name = _company(number)
        account = Ref("account", stable_id("company", environment.name, str(number)))
        domain = f"{name.rpartition(' ')[0].lower().replace(' ', '-')}-{number}.example"
        people = [
            _person(chance, environment, account, domain, f"{number}.{one}")
            for one in range(chance.randint(1, 4))
        ]
        employees = round(chance.lognormvariate(4.2, 1.6)) + 1
        city, latitude = chance.choice(_CITIES)
        environment.insert(
            "account",
            {
                "name": name,
                "accountnumber": f"C-{10_000 + number}",
                "telephone1": _telephone(chance),
                # Not everything is known of everybody.
                "emailaddress1": f"info@{domain}" if chance.random() < 0.8 else None,
                "description": "Asked for a call back." if chance.random() < 0.1 else None,
                "address1_city": city,
                "address1_latitude": latitude,
                "revenue": round(employees * chance.uniform(60_000, 220_000), 2),
                "numberofemployees": employees,
                "creditonhold": chance.random() < 0.07,
                "accountcategorycode": 1 if chance.random() < 0.25 else 2,
                "primarycontactid": people[0],
                "parentaccountid": parent,
            },
            account.id,
        )
        parent = account if employees > _LARGE else None


def _company(number: int) -> str:
    """A name of its own for each number up to 660: the first words run through, the trades shift with them."""
    first, trade = _FIRST[number % len(_FIRST)], _TRADES[(number * 7 + number // len(_FIRST)) % len(_TRADES)]
    return f"{first} {trade} {_FORMS[number % len(_FORMS)]}"


def _person(chance: random.Random, environment: Environment, employer: Ref, domain: str, key: str) -> Ref:
    given, family = chance.choice(_GIVEN), chance.choice(_FAMILY)
    fields: dict[str, Any] = {
        "firstname": given,
        "lastname": family,
        "parentcustomerid": employer,
        "jobtitle": chance.choice(_JOBS),
        "emailaddress1": f"contact-{key}@{domain}" if chance.random() < 0.9 else None,
        "donotemail": chance.random() < 0.15,
        "birthdate": f"{chance.randint(1958, 2003)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
    }
    identifier = stable_id("person", environment.name, key)
    return Ref("contact", environment.insert("contact", fields, identifier))


def _telephone(chance: random.Random) -> str:
    return f"({chance.randint(201, 989)}) 555-01{chance.randint(0, 99):02}"
