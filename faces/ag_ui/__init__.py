"""AG-UI: a session behind third-party front ends, as the events of that protocol over HTTP."""
