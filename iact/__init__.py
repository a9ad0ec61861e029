"""The front door: settings, wiring and the command line. The only package that knows every room."""
