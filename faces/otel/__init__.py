"""OpenTelemetry: a session as a trace, by the conventions for generative AI.

`spans` makes the spans, from a journal's records alone; `otlp` sends them, and is the only part that needs the packages of
the extra `otel`; `live` follows sessions as they run.
"""
