"""iact compared with LangGraph, OpenAI Agents SDK, AutoGen, pydantic-ai and smolagents, over the same HTTP endpoint."""
