"""The overhead of the plan engine, compared with a bare loop over asyncio."""
