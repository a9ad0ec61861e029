"""Modules in containers of a Docker engine."""
