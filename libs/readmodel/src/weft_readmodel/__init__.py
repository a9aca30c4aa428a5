"""Postgres tables folded from the log: one writer at a time, rows and checkpoint in one transaction.

Import the modules themselves: SQLAlchemy takes half a second that not every start needs.
"""
