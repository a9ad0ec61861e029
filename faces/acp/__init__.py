"""The Agent Client Protocol: editors that speak it drive a session as the page does.

`updates` says in its terms what happens in a session, `questions` what a person is asked; `conversation` is one session
that a client has open, `agent` the methods, and `stdio` a process that an editor starts.
"""
