from .conversation import ConversationMemory as ConversationMemory
from .forgetting import Forgotten as Forgotten
from .recall import Recall as Recall, RecallOptions as RecallOptions
from .sessions import SessionKey as SessionKey
from .turns import Turn as Turn
from .writing import TurnFields as TurnFields
