"""Modules as pods of a Kubernetes cluster; nothing of this is imported where IACT_SANDBOX names something else."""
