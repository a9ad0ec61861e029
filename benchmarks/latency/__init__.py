"""How time and tokens of a request grow with the number of tool calls it takes, by way of working (KAIJU, Table 4)."""
