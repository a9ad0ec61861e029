"""Where faces that speak HTTP are served: a port of its own in `iact serve`, for programs and not for browsers."""
