"""Saved connections: which Dataverse environments tools may use, and for whom."""
