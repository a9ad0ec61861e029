"""The scanner's throughput, compared with markdown-it-py."""
