"""`dataverseAPI`: every method, under the original's name and in snake case.

Made here, and only here, from the functions of this package; see `operation` for what becomes of their
arguments.
"""

from __future__ import annotations

from shared.apis.dataverse import batch, choices, labels, metadata, operations, queries, records, solutions
from shared.apis.dataverse.call import Call
from shared.apis.environment import Resolver, Target, environment
from shared.apis.headers import checked
from shared.apis.http import Hosts
from shared.apis.operation import Api, Headers, helper, iteration, operation


class DataverseApi(Api[Call]):
    """Requests to the Dataverse Web API of the running invocation's environments.

    `resolver`: asked for the environment of each call, in the calling code's context. `hosts`: the connections.
    """

    def __init__(self, resolver: Resolver = environment, hosts: Hosts | None = None) -> None:
        self._resolver = resolver
        self._hosts = hosts if hosts is not None else Hosts()

    def scope(self, target: Target, headers: Headers | None) -> Call:
        additional = checked(headers, "dataverseAPI")
        return Call(self._resolver(target), self._hosts, additional)

    create = operation(records.create)
    retrieve = operation(records.retrieve)
    update = operation(records.update)
    delete = operation(records.delete)
    create_multiple = operation(records.create_multiple)
    update_multiple = operation(records.update_multiple)
    associate = operation(records.associate)
    disassociate = operation(records.disassociate)
    get_entity_set_name = operation(records.get_entity_set_name)

    retrieve_multiple = operation(queries.retrieve_multiple)
    fetch_xml_query = operation(queries.fetch_xml_query)
    query_data = operation(queries.query_data)
    iterate_fetch_xml = iteration(queries.iterate_fetch_xml)
    iterate_query = iteration(queries.iterate_query)

    execute = operation(operations.execute)
    execute_batch = operation(batch.execute_batch)
    execute_transaction = operation(batch.execute_transaction)

    get_entity_metadata = operation(metadata.get_entity_metadata)
    get_all_entities_metadata = operation(metadata.get_all_entities_metadata)
    get_entity_related_metadata = operation(metadata.get_entity_related_metadata)
    create_entity_definition = operation(metadata.create_entity_definition)
    update_entity_definition = operation(metadata.update_entity_definition)
    delete_entity_definition = operation(metadata.delete_entity_definition)
    create_attribute = operation(metadata.create_attribute)
    update_attribute = operation(metadata.update_attribute)
    delete_attribute = operation(metadata.delete_attribute)
    create_polymorphic_lookup_attribute = operation(metadata.create_polymorphic_lookup_attribute)
    create_relationship = operation(metadata.create_relationship)
    update_relationship = operation(metadata.update_relationship)
    delete_relationship = operation(metadata.delete_relationship)

    create_global_option_set = operation(choices.create_global_option_set)
    update_global_option_set = operation(choices.update_global_option_set)
    delete_global_option_set = operation(choices.delete_global_option_set)
    insert_option_value = operation(choices.insert_option_value)
    update_option_value = operation(choices.update_option_value)
    delete_option_value = operation(choices.delete_option_value)
    order_option = operation(choices.order_option)

    get_solutions = operation(solutions.get_solutions)
    deploy_solution = operation(solutions.deploy_solution)
    get_import_job_status = operation(solutions.get_import_job_status)
    publish_customizations = operation(solutions.publish_customizations)
    get_csdl_document = operation(solutions.get_csdl_document)

    build_label = helper(labels.build_label)
    get_attribute_odata_type = helper(labels.get_attribute_odata_type)
