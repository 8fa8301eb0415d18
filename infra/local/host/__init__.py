"""A local Azure Functions host: drives the real Python worker library and hosts any app folder.

Run it with ``python -m infra.local.host APP_DIR``. README.md says what it mirrors and what it does not.
"""
