"""How time and tokens of a request grow with its number of tool calls, by way of working (KAIJU, Table 4)."""
