"""What the two original systems' own tests and bug reports are held by here, name by name.

    table.py       the form of an entry
    holodeck.py    the names of HoloDeck's tests of its MCP tools
    agentzero.py   the names of Agent Zero's tests of `mcp_handler` and what belongs to it
    reports.py     thirty reports of faults in these and other MCP clients

`tests/unit/upstream/test_counterparts.py` holds that every test that is named here is there. An original that
is about something which this project does not have says so, with the reason.
"""
