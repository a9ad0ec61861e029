"""The gRPC contract between the core and ext-modules, and the stubs generated from it.

`iact/ext_module/v1/ext_module.proto` is the contract and its documentation. After changing it, run `python -m
protos.generate` to regenerate the stubs.
"""
