"""OpenTelemetry: a session as a trace, following the conventions for generative AI.

`spans` makes the spans, only from a journal's records. `otlp` sends them, and is the only part that needs the packages of
the extra `otel`. `live` follows sessions while they run.
"""
