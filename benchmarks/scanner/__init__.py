"""The scanner's throughput, beside markdown-it-py."""
