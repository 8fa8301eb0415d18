"""The $metadata document (CSDL): types, keys, properties, navigation properties, entity sets, operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import quoteattr

from infra.local.dataverse.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.dataverse.catalogue import Catalogue
    from infra.local.dataverse.schema import Table

_HEAD: Final = (
    '<?xml version="1.0" encoding="utf-8"?>'
    '<edmx:Edmx Version="4.0" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx"><edmx:DataServices>'
    '<Schema Namespace="Microsoft.Dynamics.CRM" Alias="mscrm" xmlns="http://docs.oasis-open.org/odata/ns/edm">'
    '<EntityType Name="crmbaseentity" Abstract="true" />'
)
_TAIL: Final = "</Schema></edmx:DataServices></edmx:Edmx>"


def csdl(catalogue: Catalogue) -> str:
    """The document, as definitions are now."""
    tables = list(catalogue.tables.values())
    parts = [_HEAD, *(part for table in tables for part in _type(catalogue, table))]
    for name, is_function in OPERATIONS.items():
        parts.append(f'<{"Function" if is_function else "Action"} Name="{name}" />')
    parts.append('<EntityContainer Name="System">')
    parts += [f'<EntitySet Name={quoteattr(table.set_name)} EntityType="Microsoft.Dynamics.CRM.{table.name}" />'
              for table in tables]  # fmt: skip
    parts += ["</EntityContainer>", _TAIL]
    return "".join(parts)


def _type(catalogue: Catalogue, table: Table) -> Iterator[str]:
    yield f'<EntityType Name="{table.name}" BaseType="mscrm.crmbaseentity">'
    yield f'<Key><PropertyRef Name="{table.primary_id}" /></Key>'
    for column in table.columns.values():
        yield f'<Property Name="{column.property_name}" Type="{column.edm}" />'
    for navigation in catalogue.navigations(table):
        target = f"mscrm.{navigation.target}"
        target = f"Collection({target})" if navigation.collection else target
        yield f'<NavigationProperty Name="{navigation.name}" Type="{target}" />'
    yield "</EntityType>"
