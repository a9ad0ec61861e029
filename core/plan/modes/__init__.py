"""The modes: after which event a plan is judged. One file each; the machinery is the same for all."""
