"""The Agent Client Protocol, with which editors drive a session as the page does.

`updates` translates what happens in a session into the protocol's terms, and `questions` what a person is asked.
`conversation` is one session that a client has open, `agent` has the methods, and `stdio` is a process that an editor
starts.
"""
