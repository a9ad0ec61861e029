"""Agent Skills: a folder with a `SKILL.md`, as a module of the catalogue."""
