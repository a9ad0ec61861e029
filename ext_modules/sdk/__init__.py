"""The SDK for ext-modules: write functions, get a gRPC server.

    from ext_modules.sdk import Module

    module = Module("weather", "Forecasts for a place.", keywords=["weather", "rain"])

    @module.function(impact=0, summary="Forecast for a place")
    async def forecast(place: str, days: int = 3) -> str:
        \"\"\"place: a town; days: 1 to 7.\"\"\"
        ...

`python3 -m ext_modules.sdk serve module.py --socket PATH` serves the module; `ext_modules.sdk.testing` runs it in
process. Importing this package does not import gRPC.
"""

from ext_modules.sdk.call import AgentState, Call, current_call
from ext_modules.sdk.module import Function, Module
from ext_modules.sdk.questions import Answer, AskRefused
from ext_modules.sdk.values import Result, Value

__all__ = [
    "AgentState",
    "Answer",
    "AskRefused",
    "Call",
    "Function",
    "Module",
    "Result",
    "Value",
    "current_call",
]
