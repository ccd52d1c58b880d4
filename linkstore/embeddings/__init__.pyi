from .names import get_embedding as get_embedding, name_embedding as name_embedding
