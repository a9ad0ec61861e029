"""Extended Markdown: what agents write and read. Pure; recognising never has effects."""
