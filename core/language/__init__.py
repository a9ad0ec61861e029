"""Extended Markdown: what agents write and read. Pure; recognizing never has effects."""
