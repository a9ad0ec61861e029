"""What a step, a child agent, an append and a replay cost, ours beside AutoGen and LangGraph."""
