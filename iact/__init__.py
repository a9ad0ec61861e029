"""The top-level package: settings, wiring and the command line. The only package that imports all the others."""
