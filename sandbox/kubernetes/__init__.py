"""Modules as pods of a Kubernetes cluster. Not imported if IACT_SANDBOX names another backend."""
