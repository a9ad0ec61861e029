"""OpenAI's Responses and chat completions APIs: any program that can call a model can use a session as its model."""
