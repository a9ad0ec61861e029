"""What the plan engine adds to the work of a plan, beside a bare loop over asyncio."""
