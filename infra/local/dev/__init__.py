"""The pieces of dev.py: set-up, run, demo, checks. Standard library only.

`dev.py` may be started by any Python from 3.8 on, and it imports from here before it has found the 3.13 that
the app needs: every module of this package keeps to the grammar and the library of Python 3.8.
"""
