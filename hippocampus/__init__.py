"""The Hippocampus: a vector memory next to the tree. Importing this package loads neither Chroma nor a model."""

from iact.hippocampus.embedding import OpenAIEmbedder, WordEmbedder
from iact.hippocampus.memory import Hippocampus, UserMemory, open_hippocampus
from iact.hippocampus.switch import SwitchFile

__all__ = ["Hippocampus", "OpenAIEmbedder", "SwitchFile", "UserMemory", "WordEmbedder", "open_hippocampus"]
