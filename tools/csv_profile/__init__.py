"""Profiles a CSV text. `csv_profile` is the decorated function; nothing else here is for other modules."""

from tools.csv_profile.tool import csv_profile as csv_profile

__all__ = ["csv_profile"]
