"""How long one piece of work holds up everything else on the event loop."""
