"""Microsoft.Network. Source: "Bicep resource definition" pages of Microsoft.Network."""

from __future__ import annotations

from infra.azure.lint.schema.model import TAGS, ResourceType, array, need, obj, one_of, read
from infra.azure.lint.types import BOOL, STR

_VERSION = "2024-05-01"
_DNS_VERSION = "2020-06-01"
_REFERENCE = obj(id=need(STR))

_SUBNET = obj(
    addressPrefix=STR,
    addressPrefixes=array(STR),
    delegations=array(
        # What a Flex Consumption app needs of its subnet.
        obj(name=need(STR), properties=need(obj(serviceName=need(one_of("Microsoft.App/environments")))))
    ),
    networkSecurityGroup=_REFERENCE,
    natGateway=_REFERENCE,
    routeTable=_REFERENCE,
    defaultOutboundAccess=BOOL,
    privateEndpointNetworkPolicies=one_of(
        "Disabled", "Enabled", "NetworkSecurityGroupEnabled", "RouteTableEnabled"
    ),
    privateLinkServiceNetworkPolicies=one_of("Disabled", "Enabled"),
    serviceEndpoints=array(obj(service=need(STR), locations=array(STR))),
)

_LINK = array(
    obj(
        name=need(STR),
        properties=need(
            obj(
                privateLinkServiceId=need(STR),
                groupIds=need(array(one_of("blob", "queue", "table", "file", "vault", "sites"))),
                requestMessage=STR,
            )
        ),
    )
)

TYPES = (
    ResourceType(
        "Microsoft.Network/virtualNetworks",
        _VERSION,
        obj(
            name=need(STR),
            location=need(STR),
            tags=TAGS,
            properties=need(
                obj(
                    addressSpace=need(obj(addressPrefixes=need(array(STR)))),
                    subnets=array(obj(name=need(STR), properties=need(_SUBNET))),
                    dhcpOptions=obj(dnsServers=array(STR)),
                    enableDdosProtection=BOOL,
                    provisioningState=read(),
                )
            ),
        ),
    ),
    ResourceType(
        "Microsoft.Network/virtualNetworks/subnets", _VERSION, obj(name=need(STR), properties=_SUBNET)
    ),
    ResourceType(
        "Microsoft.Network/privateEndpoints",
        _VERSION,
        obj(
            name=need(STR),
            location=need(STR),
            tags=TAGS,
            properties=need(
                obj(
                    subnet=need(_REFERENCE),
                    privateLinkServiceConnections=_LINK,
                    manualPrivateLinkServiceConnections=_LINK,
                    customNetworkInterfaceName=STR,
                    provisioningState=read(),
                )
            ),
        ),
    ),
    ResourceType(
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
        _VERSION,
        obj(
            name=need(STR),
            properties=need(
                obj(
                    privateDnsZoneConfigs=need(
                        array(obj(name=need(STR), properties=need(obj(privateDnsZoneId=need(STR)))))
                    )
                )
            ),
        ),
    ),
    ResourceType(
        "Microsoft.Network/privateDnsZones",
        _DNS_VERSION,
        obj(
            name=need(STR), location=need(one_of("global")), tags=TAGS, properties=obj(provisioningState=read())
        ),
    ),
    ResourceType(
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
        _DNS_VERSION,
        obj(
            name=need(STR),
            location=need(one_of("global")),
            tags=TAGS,
            properties=need(
                obj(registrationEnabled=need(BOOL), virtualNetwork=need(_REFERENCE), provisioningState=read())
            ),
        ),
    ),
)
