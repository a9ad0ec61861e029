"""OpenAI's Responses and chat completions: a session as the model of any program that speaks to one."""
