"""The server of HTTP faces: a separate port of `iact serve`, for programs and not for browsers."""
