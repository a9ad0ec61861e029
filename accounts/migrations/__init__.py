"""The history of the tables, one migration after another; Alembic runs those that are missing."""
