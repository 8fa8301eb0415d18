"""The invocation log: one record of every call."""
