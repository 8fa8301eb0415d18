"""Checks the Bicep files of infra/azure without Azure, network or compiler: `python3 dev.py check`.

    tokens, syntax, expressions, statements    text -> tree
    schema                                     what the resource types in use have, from their documentation
    types                                      the values that expressions can have
    symbols, literals, inference, values       one file: names, types, properties
    declared, resources, files                 its statements, and files together
    settings, parameters, project              app settings, main.parameters.json, azure.yaml
    report                                     findings

It knows the part of the language that these files use and refuses the rest, so that nothing is left unchecked.
It is no compiler: `az bicep build` and `azd provision --preview` know more, and were not run in CI.
"""
