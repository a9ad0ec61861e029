"""AG-UI: a session behind other people's front ends, as the events of that protocol over HTTP."""
