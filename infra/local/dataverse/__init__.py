"""A stand-in for Dataverse's Web API, its token endpoint and the Power Platform API, in memory, over https.

For tests and for trying tools without an environment. Never part of the deployed app. README.md says what it
mirrors and what it does not.
"""
